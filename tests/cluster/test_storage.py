"""Stores on object storage: a worker copies its own, closed to others, and keeps no file of it."""

import os
import re
import stat
import tempfile
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFile
from sklearn.base import clone

from cluster.cases import MODELS, Killer, Watched, cut, records, released
from dplasso import DataError, StoreError, write_store
from dplasso.cluster import InProcessEngine, ThreadEngine, storage


@pytest.fixture
def addresses(tmp_path, monkeypatch):
    """Two stores in fsspec's memory, by their addresses; temporary files go to a folder."""
    X, y = records(120, 60)
    memory = fsspec.filesystem("memory")
    for number, part in enumerate(zip(*cut(X, y, 2), strict=True)):
        write_store(tmp_path / f"{number}.store", *part)
        memory.put(f"{tmp_path}/{number}.store", f"/bucket/{number}.store", recursive=True)
    (tmp_path / "local").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "local"))
    yield [f"memory://bucket/{number}.store" for number in range(2)]
    memory.rm("/bucket", recursive=True)


class Looking(Watched):
    """Notes which files there are once a worker has opened its copy."""

    def answer(self, handle, method, *args):
        if method == "encode":
            assert not list(Path(tempfile.gettempdir()).iterdir())
        return handle.inside.call(method, *args)


def test_it_says_how_much_and_nobody_else_may_read_it(addresses, tmp_path, monkeypatch, capfd):
    large = write_store(tmp_path / "2.store", *records(4000, 60))
    addresses[0] = "memory://bucket/2.store"
    fsspec.filesystem("memory").put(str(large.path), "/bucket/2.store", recursive=True)
    monkeypatch.setattr(storage, "PIECE", 50_000)
    modes, before, read = set(), os.umask(0), MemoryFile.read

    def noting(*arguments):
        for place in (tmp_path / "local").rglob("*"):
            modes.add((place.is_dir(), stat.S_IMODE(place.stat().st_mode)))
        return read(*arguments)

    monkeypatch.setattr(MemoryFile, "read", noting)
    engine = Looking()
    try:
        clone(MODELS["dense"]).set_params(verbose=1).fit(addresses, engine=engine)
    finally:
        os.umask(before)
    assert "encode" in {method for method, *_ in engine.calls}
    assert modes == {(True, 0o700), (False, 0o600)}
    told = re.findall(r"copied ([\d.]+) of ([\d.]+) MB from object storage", capfd.readouterr().err)
    size = sum(place.stat().st_size for name in "21" for place in tmp_path.glob(f"{name}.store/*"))
    assert told[-1] == (f"{size / 1e6:.1f}",) * 2
    assert len(told) > 10
    assert told == sorted(told)


def test_a_worker_lost_while_copying_or_later_copies_anew(addresses, monkeypatch):
    monkeypatch.setattr(storage, "PIECE", 1000)
    model, expected = MODELS["dense"], released(MODELS["dense"].fit(*records(120, 60)))
    engine = Killer(at=(9, 12, 130, 131))
    assert released(model.fit(addresses, engine=engine)) == expected
    methods = [method for method, *_ in engine.calls]
    assert methods[9] == methods[12] == "copy"
    assert ("copy", True) in engine.calls


@pytest.mark.parametrize(
    "address",
    ["s3://bucket/month=2026-01/a b.store", "webhdfs://name:9870/a", "file:///a/b", "gs://bucket"],
)
def test_a_scheme_a_host_and_a_path_are_an_address(address, monkeypatch):
    def reached(url):
        raise OSError(f"nothing at {url}")

    monkeypatch.setattr(fsspec.core, "url_to_fs", reached)
    with pytest.raises(DataError, match=f"{address} cannot be read: nothing at {address}$"):
        MODELS["dense"].fit([f"{address}/"], engine=InProcessEngine())


@pytest.mark.parametrize(
    "address",
    [
        *("s3://XUtn@bucket/a", "s3://key::XUtn@bucket/a", "s3://key%3AXUtn/a"),
        *("s3://b/a;sig=XUtn", "s3://b/a?sig=XUtn", "s3://b/a#token=XUtn", "s3://b/a:XUtn"),
        *("s3://b:XUtn/a", "XUtn@s3://b", "s3://b/a&sig=XUtn", "s3://b/\nXUtn", "a::s3://XUtn"),
        "memory://b:12/a@XUtn",
    ],
)
def test_what_may_be_a_secret_is_refused_and_not_told(address):
    with pytest.raises(DataError, match="holds more than a scheme, a host and a path") as told:
        MODELS["dense"].fit([address], engine=InProcessEngine())
    assert "XUtn" not in str(told.value)


@pytest.mark.parametrize("name", ["labels", "rows.indices"])
def test_a_copy_that_differs_in_a_bit_is_refused(addresses, name):
    """Labels of equal length that were flipped on the way were trained on."""
    memory, place = fsspec.filesystem("memory"), f"/bucket/1.store/{name}.npy"
    content = bytearray(memory.cat(place))
    content[-8 if name == "labels" else -4] ^= 1
    memory.pipe(place, bytes(content))
    sentence = rf"memory://bucket/1.store/{name}.npy is damaged: the checksum of bytes"
    with pytest.raises(StoreError, match=sentence):
        MODELS["dense"].fit(addresses, engine=ThreadEngine())
    if name == "labels":
        with pytest.raises(StoreError, match=sentence):
            storage.header_and_labels(addresses[1])


def test_what_cannot_be_read_is_refused(addresses):
    engine, model = InProcessEngine(), MODELS["dense"]
    source = Path(tempfile.gettempdir()).parent / "0.store"
    sentence = r"nosuch://bucket/a.store cannot be read: Protocol not known"
    with pytest.raises(DataError, match=sentence):
        model.fit(["nosuch://bucket/a.store"], engine=engine)
    with pytest.raises(DataError, match="is given twice"):
        model.fit([addresses[0], addresses[0] + "/"], engine=engine)
    with pytest.raises(DataError, match="holds the same rows as another partition"):
        model.fit([addresses[0], f"file://{source}"], engine=engine)
