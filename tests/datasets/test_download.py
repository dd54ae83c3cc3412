"""Downloads: whole under their name or not there, resumed, and the same as the first time."""

import errno
import hashlib
import os
import resource
import shutil
import socket
import subprocess
from collections import namedtuple

import numpy as np
import pytest

from datasets.file_server import serving
from dplasso.datasets.download import NotThereError, download, pin_file
from dplasso.errors import DataError
from dplasso.files.lock import hold

CONTENT = np.random.default_rng(0).bytes(1_000_000)
PIECE = 262_144
SUM = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server():
    with serving({"file.bz2": CONTENT}) as running:
        yield running


@pytest.fixture
def fetch(server, tmp_path):
    def fetch(**options):
        options = {"attempts": 1, "wait": 0.0} | options
        return download(f"{server.url}file.bz2", tmp_path / "new" / "file.bz2", **options)

    return fetch


@pytest.fixture
def broken(fetch, server):
    """A download that broke off after the first piece."""
    server.cut_after = PIECE
    with pytest.raises(ConnectionError):
        fetch()
    server.cut_after = None


def change_part(tmp_path, change):
    """Change what has arrived, but not its date."""
    part = tmp_path / "new" / "file.bz2.part"
    date = part.stat().st_mtime
    part.write_bytes(change(part.read_bytes()))
    os.utime(part, (date, date))


def held(tmp_path):
    return {path.name for path in (tmp_path / "new").iterdir()}


def test_whole_file_with_its_checksum(fetch, server, tmp_path):
    seen = []
    path = fetch(progress=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert held(tmp_path) == {"file.bz2", "file.bz2.sha256"}
    assert pin_file(path).read_text() == f"{SUM}  file.bz2\n"
    assert seen == sorted(seen)
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert server.requests == [("/file.bz2", None)]
    checked = subprocess.run(
        ["sha256sum", "--check", "file.bz2.sha256"], cwd=path.parent, capture_output=True
    )
    assert checked.returncode == 0


def test_a_file_that_is_there_is_not_asked_for_again(fetch, server):
    fetch()
    server.status = 503
    assert fetch().read_bytes() == CONTENT
    assert len(server.requests) == 1


class TestBroken:
    def test_the_next_run_goes_on(self, fetch, server, tmp_path):
        server.cut_after = PIECE
        for k in (1, 2, 3):
            with pytest.raises(ConnectionError, match=f"broke .{k * PIECE:,} bytes have arrived"):
                fetch()
            assert held(tmp_path) == {"file.bz2.part"}
        seen = []
        path = fetch(progress=lambda done, total: seen.append(done))
        assert path.read_bytes() == CONTENT
        assert server.sent == len(CONTENT)
        assert min(seen) > 3 * PIECE
        assert [part for _, part in server.requests] == [
            None,
            *(f"bytes={k * PIECE}-" for k in (1, 2, 3)),
        ]
        assert held(tmp_path) == {"file.bz2", "file.bz2.sha256"}

    def test_one_run_takes_it_up_again(self, fetch, server):
        server.cut_after = PIECE
        assert fetch(attempts=4).read_bytes() == CONTENT
        assert len(server.requests) == 4

    @pytest.mark.parametrize("date", ["", "Sat, 01 Jan 2022 00:00:00 GMT"])
    def test_without_a_date_or_parts_it_starts_again(self, fetch, server, date):
        server.cut_after, server.date, server.ranges = PIECE, date, not date
        with pytest.raises(ConnectionError):
            fetch()
        server.cut_after = None
        assert fetch().read_bytes() == CONTENT
        assert date or server.requests[-1] == ("/file.bz2", None)

    def test_killed_at_any_byte(self, fetch, server, tmp_path, monkeypatch):
        """The date is on the part as soon as anything is."""
        dated = []

        def kill(done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fetch(progress=lambda done, total: dated.append(done) if done < PIECE else kill(0, 0))
        assert fetch().read_bytes() == CONTENT
        assert server.requests[-1] == ("/file.bz2", f"bytes={dated[-1] + 65_536}-")

    def test_a_file_that_changed_meanwhile_is_not_mixed(self, fetch, server, broken):
        other = server.files["file.bz2"] = CONTENT[::-1]
        server.date = "Sat, 01 Jan 2022 00:00:01 GMT"
        assert fetch().read_bytes() == other

    def test_another_part_than_asked_for(self, fetch, server, tmp_path, broken):
        server.wrong_part = True
        with pytest.raises(ConnectionError, match="a different part from the one asked for"):
            fetch()
        assert "file.bz2" not in held(tmp_path)

    @pytest.mark.parametrize("size", [len(CONTENT), len(CONTENT) + 1])
    def test_a_part_that_is_complete_or_too_long(self, fetch, tmp_path, size, broken):
        """As a kill between the last byte and the renaming leaves it, or a damaged disk."""
        change_part(tmp_path, lambda _: (CONTENT + b"x")[:size])
        assert fetch(attempts=2).read_bytes() == CONTENT


class TestChecksum:
    def test_another_file_than_the_first_time(self, fetch, server, tmp_path):
        fetch().unlink()
        server.files["file.bz2"] = CONTENT[:-1] + b"!"
        with pytest.raises(DataError, match=f"but {SUM} was pinned .* was not kept"):
            fetch()
        assert held(tmp_path) == {"file.bz2.sha256"}
        server.files["file.bz2"] = CONTENT
        assert fetch().read_bytes() == CONTENT

    def test_a_part_that_was_damaged_on_this_disk(self, fetch, server, tmp_path):
        fetch().unlink()
        server.cut_after = PIECE
        with pytest.raises(ConnectionError):
            fetch()
        server.cut_after = None
        change_part(tmp_path, lambda content: b"?" + content[1:])
        with pytest.raises(DataError, match="was not kept"):
            fetch()
        assert fetch().read_bytes() == CONTENT

    def test_a_file_that_changed_on_this_disk(self, fetch):
        path = fetch()
        path.write_bytes(CONTENT[1:])
        with pytest.raises(DataError, match="delete it to download it again"):
            fetch()
        assert path.read_bytes() == CONTENT[1:]

    @pytest.mark.parametrize("pin", ["", "abc  file.bz2\n"])
    def test_a_damaged_pin(self, fetch, pin):
        pin_file(fetch()).write_text(pin)
        with pytest.raises(DataError, match="no SHA-256 sum in this file"):
            fetch()


class TestServer:
    def test_no_network_and_no_such_host(self, tmp_path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for host in (f"127.0.0.1:{port}", "nowhere.invalid"):
            with pytest.raises(ConnectionError, match="cannot be reached; is there a network"):
                download(f"http://{host}/file.bz2", tmp_path / "new" / "f", attempts=2, wait=0.0)
        assert held(tmp_path) == set()

    def test_no_such_file(self, server, tmp_path):
        with pytest.raises(NotThereError, match="no such file"):
            download(f"{server.url}other", tmp_path / "new" / "other")
        assert held(tmp_path) == set()

    @pytest.mark.parametrize("status", [403, 500, 503, None])
    def test_refusals_and_web_pages(self, fetch, server, tmp_path, status):
        server.status, server.content_type = status, "text/html; charset=utf-8"
        problem = f"the server answers {status}" if status else "a web page, not"
        with pytest.raises(ConnectionError, match=problem):
            fetch()
        assert held(tmp_path) == set()


class TestDisk:
    def test_full(self, fetch, tmp_path):
        # A file that may not grow any more fails like one on a full disk.
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            with pytest.raises(OSError, match=r"part: .* File too large; make room and run it"):
                fetch()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert "file.bz2" not in held(tmp_path)
        assert fetch().read_bytes() == CONTENT

    def test_too_small(self, fetch, server, tmp_path, monkeypatch):
        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**6, 1, 999_999))
        with pytest.raises(OSError, match=r"1.0 MB are to come and 1.0 MB are free") as caught:
            fetch()
        assert caught.value.errno == errno.ENOSPC
        assert "file.bz2" not in held(tmp_path)

    def test_something_in_the_way(self, fetch, tmp_path):
        (tmp_path / "new").write_text("")
        with pytest.raises(FileExistsError):
            fetch()
        (tmp_path / "new").unlink()
        (tmp_path / "new").mkdir()
        with (
            hold(tmp_path / "new" / "file.bz2", RuntimeError()),
            pytest.raises(DataError, match="another process is downloading it"),
        ):
            fetch()
        assert fetch().read_bytes() == CONTENT
