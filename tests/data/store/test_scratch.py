"""Room for numbers in a file beside a store: nothing of it is left behind."""

import errno
import os
import tempfile

import numpy as np
import pytest

from dplasso.data.store import opening
from dplasso.data.store.opening import scratch


@pytest.mark.parametrize("dtype", [np.uint32, np.float32, np.float64])
def test_an_array_takes_room_beside_the_store_and_leaves_no_file(tmp_path, monkeypatch, dtype):
    places = []
    take = tempfile.TemporaryFile

    def noting(**options):
        file = take(**options)
        places.append((options["dir"], os.fstat(file.fileno())))
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", noting)
    found = scratch(tmp_path / "a.store", 5000, dtype)
    assert type(found) is np.ndarray
    assert found.flags.writeable
    assert not found.any()
    found[:] = np.arange(5000)
    np.testing.assert_array_equal(found, np.arange(5000, dtype=dtype))
    ((folder, status),) = places
    assert folder == os.fspath(tmp_path)
    assert status.st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []
    assert scratch(tmp_path / "a.store", 0, dtype).dtype == dtype


def test_where_a_store_s_folder_has_no_room_there_is_that_of_the_system(tmp_path, monkeypatch):
    full, other = tmp_path / "full", tmp_path / "other"
    full.mkdir()
    other.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(other))
    fill, filled = opening.fill, []

    def limited(file, size):
        filled.append(size)
        if len(filled) % 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        fill(file, size)

    monkeypatch.setattr(opening, "fill", limited)
    assert scratch(full / "a.store", 10, np.uint32).tolist() == [0] * 10
    assert filled == [40, 40]
    # A folder that is not there, or is nobody's to write to, is no other case.
    assert scratch(tmp_path / "none" / "a.store", 0, np.uint32).size == 0
    monkeypatch.setattr(opening, "fill", lambda file, _: limited(file, filled.clear() or 1))
    with pytest.raises(OSError, match=r"A fit of .*a\.store needs room for 0\.0 MB") as caught:
        scratch(full / "a.store", 10, np.uint32)
    assert caught.value.errno == errno.ENOSPC
    assert "system's temporary folder (No space left on device)" in str(caught.value)
    assert list(full.iterdir()) == list(other.iterdir()) == []


@pytest.mark.parametrize("error", [None, errno.EOPNOTSUPP])
def test_room_is_written_where_the_system_cannot_reserve_it(tmp_path, monkeypatch, error):
    def unable(*_):
        raise OSError(error, "Operation not supported")

    monkeypatch.delattr(os, "posix_fallocate")
    if error is not None:
        monkeypatch.setattr(os, "posix_fallocate", unable, raising=False)
    with (tmp_path / "room").open("wb") as file:
        opening.fill(file, 2**21 + 5)
    found = (tmp_path / "room").stat()
    assert found.st_size == 2**21 + 5 <= found.st_blocks * 512
