"""The reader held against the slow reference, bit for bit or line for line."""

import numpy as np
import pytest
from evidence.reference import svmlight as reference

from dplasso.data.svmlight.reader import read_svmlight
from dplasso.errors import DataError


def check_like_reference(path, text, **options):
    """Read what the reference reads, bit for bit, or refuse the line that it refuses."""
    path.write_bytes(text)
    told = {name: options[name] for name in options if name not in ("block_bytes", "n_threads")}
    bad_line = None
    try:
        expected = reference.svmlight_records(text, **told)
    except reference.BadLineError as error:
        bad_line = str(error)
    if bad_line is not None:
        with pytest.raises(DataError) as caught:
            read_svmlight(path, **options)
        message = str(caught.value).removeprefix(str(path))
        assert message.startswith((f", line {bad_line}: ", ": the content is "))
        return
    entries = [entry for _, row in expected for entry in row]
    if not expected or (not entries and told.get("n_features") is None):
        with pytest.raises(DataError, match="no record"):
            read_svmlight(path, **options)
        return
    X, y = read_svmlight(path, **options)
    X.check_format()
    assert X.has_canonical_format
    largest = max((column for column, _ in entries), default=-1)
    assert X.shape == (len(expected), told.get("n_features") or largest + 1)
    labels = np.array([label for label, _ in expected])
    np.testing.assert_array_equal(y.view(np.int64), labels.view(np.int64))
    assert np.diff(X.indptr).tolist() == [len(row) for _, row in expected]
    assert X.indices.tolist() == [column for column, _ in entries]
    values = np.array([value for _, value in entries], np.float32)
    np.testing.assert_array_equal(X.data.view(np.int32), values.view(np.int32))
