"""Public numbers that a fit rests on."""

import pytest

from dplasso.errors import DataError
from dplasso.privacy.parameters import check_records, share_bits


def test_shares_are_narrower_where_there_may_be_more_records():
    """By a number that is public or was counted privately: never by the records themselves."""
    assert share_bits(None) == share_bits(1) == share_bits(2.0**30) == 32
    assert share_bits(2.0**30 + 1) == share_bits(1e10) == 29
    for bits in (32, 29):
        most = 2 ** (63 - bits) - 1
        assert most * 2**bits < 2**63
        check_records(most, bits)
        with pytest.raises(DataError, match=f"{most + 1:,} rows; at most {most:,} are possible"):
            check_records(most + 1, bits)
    with pytest.raises(DataError, match="declare it with n_records"):
        check_records(2**31, 32)
