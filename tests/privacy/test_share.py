"""The one conversion from floats to integers, that there is no other, and how wide it is."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dplasso
from dplasso import DataError
from dplasso.privacy.parameters import check_records, share_bits
from dplasso.privacy.share import share, shares

LIMIT = 2.0**32


@given(st.floats(), st.sampled_from([LIMIT, 2.0**33 * 0.7, 1.0]))
@example(np.nan, LIMIT)
def test_a_share_stays_within_its_limit_and_does_not_grow(value, limit):
    found = share(value, limit)
    assert abs(found) <= limit
    if value != value:
        assert found == 0
    elif abs(value) <= limit:
        assert found == int(value)
    else:
        assert found == int(limit) * np.sign(value)
    assert shares(np.array([value]), limit).tolist() == [found]


# Where statistics are computed. There a number becomes an integer by `share`, or was one before:
# the names below are of indices, pointers, counts and steps.
ROOMS = ("gradient_descent", "frank_wolfe", "losses", "cluster")
MODULES = ("tuning/metrics.py", "tuning/estimates.py", "tuning/scores.py", "privacy/release.py")
NAMES = """
    NOTHING_REPORTED X _X _sign _vertex amounts begin blocks c calendar changed columns
    count count_due data design diff due edges end first i indices indptr intercept k last
    levels loss m max n_columns n_coordinates n_outputs n_rows noted np p places r row
    row_edges rows scale_exponents selector self shape shift sign size state step t tiles
    times transcript until vertex
"""
INTEGERS = {*NAMES.split()}
# What is computed from floats and is no part of a statistic: numbers that are public or were
# released, the bits of a double, what a file holds, and the step at which a row is looked at again,
# which depends on its own margin (a NaN is none, as the line before compares it).
OTHERS = {
    "AVERAGED * n_steps",
    "_POWER[i] + (k >> 8 << 52)",
    "bits - (exponent << 52)",
    # The bound on a share, in whole units; how many cores a machine has, and shares of them.
    *("limit", "part", "resources.get('CPU', 0)"),
    # Whether an entry is there that is read ahead, which nobody needs.
    "rows.values[p] != 0",
    # Loads, of released energies, and the numbers that loads are compared with.
    "np.rint(LARGEST_LOAD * np.exp2(np.arange(-9, 49) / 3.0))",
    "np.ceil(LARGEST_LOAD * np.minimum(1.0, parts))",
    "math.log2(noise_scale * unit / LARGEST_SCALE)",
    "min(guess, np.float64(n_steps))",
    "max(fewest, min(float(most), (1.0 + root) / (4.0 * memory)))",
    "min(LARGE_STEP_ENTRIES / mean, 2.0 ** 62)",
    # How often a column is halved: a place in a table, by its released energy.
    "np.searchsorted(edges, energies, side='right')",
    # The same, by released counts, and how large the entries of a column are.
    *("np.minimum(exponents, MOST_SCALE_EXPONENT)", "sizes"),
    # How many records count at all.
    "np.count_nonzero(self.weights > 0.0)",
    # The number of a class, whose weight is looked up.
    "target",
}
CONVERSIONS = {
    *("int", "round", "math.trunc", "math.ceil", "math.floor", "astype"),
    *("np.intp", "np.int8", "np.int16", "np.int32", "np.int64"),
    *("np.uint8", "np.uint16", "np.uint32", "np.uint64"),
}


def conversions(source):
    """List what is converted to an integer, as text, with the names in it."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        called = "astype" if called.endswith(".astype") else called
        if called not in CONVERSIONS:
            continue
        what = node.func.value if called == "astype" else node.args[0]
        if called == "astype" and re.search("float|<f", ast.unparse(node.args[0])):
            continue
        names = {part.id for part in ast.walk(what) if isinstance(part, ast.Name)}
        names |= {part.attr for part in ast.walk(what) if isinstance(part, ast.Attribute)}
        yield ast.unparse(what), names


def sources():
    root = Path(dplasso.__file__).parent
    rooms = [path for room in ROOMS for path in sorted((root / room).rglob("*.py"))]
    assert len(rooms) > 30
    return {str(path.relative_to(root)): path.read_text() for path in rooms} | {
        name: (root / name).read_text() for name in MODULES
    }


@pytest.mark.parametrize("name", sources())
def test_statistics_are_made_of_shares_alone(name):
    found = conversions(sources()[name])
    assert not [text for text, names in found if not names <= INTEGERS and text not in OTHERS]


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
