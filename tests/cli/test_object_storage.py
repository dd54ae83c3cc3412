"""``--cluster`` on stores, on addresses of them as on a folder; what cannot be is one sentence."""

import shutil
import stat
import tempfile
from pkgutil import resolve_name
from unittest.mock import patch

import fsspec
import numpy as np
import pytest

import dplasso
from cli.conftest import charged_to, done, found, new_ledger, refused, run_command
from dplasso.checkpoint import read_checkpoint

CLUSTER = ("--cluster", "threads")
PAID = ("--epsilon", "20")


@pytest.fixture
def bucket(stores, tmp_path, monkeypatch):
    """Give the address of a folder of stores in fsspec's memory; temporary files have a folder."""
    memory = fsspec.filesystem("memory")
    memory.put(str(stores), "/bucket/stores", recursive=True)
    memory.pipe("/bucket/stores/notes.txt", b"not a store")
    memory.pipe("/bucket/stores/part-1.other/file", b"not one either")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    yield "memory://bucket/stores"
    memory.rm("/bucket", recursive=True)


@pytest.fixture
def ledger(tmp_path):
    return new_ledger(tmp_path / "team.ledger", 50, 1e-5, "visits")


def opened(*data):
    """Return the stores that a fit takes some names for, and their labels, and do not fit."""
    enough = patch("dplasso.cli.training.fit_estimator", side_effect=ValueError("enough"))
    with enough as fit, patch("dplasso.cli.training.EstimatorOptions.declare") as declare:
        refused(run_command("fit", *data, *PAID, *CLUSTER), "enough")
    return fit.call_args.args[1], declare.call_args.args[1]


def left_behind(tmp_path):
    return list((tmp_path / "temporary").iterdir())


def test_the_coordinator_copies_headers_and_labels_alone(stores, bucket, tmp_path, monkeypatch):
    memory, names, modes = fsspec.filesystem("memory"), [], set()
    original = type(memory).open

    def opening(self, path, *args, **kwargs):
        names.append(path.rpartition("/")[2])
        for place in (tmp_path / "temporary").rglob("*"):
            modes.add((place.is_dir(), stat.S_IMODE(place.stat().st_mode)))
        return original(self, path, *args, **kwargs)

    monkeypatch.setattr(type(memory), "open", opening)
    places, labels = opened(bucket)
    assert set(names) == {"header.json", "labels.npy"}
    assert modes == {(True, 0o700), (False, 0o600)}
    assert places == [f"{bucket}/part-{number}.store" for number in (9, 10, 11)]
    np.testing.assert_array_equal(labels, opened(stores)[1])
    assert not left_behind(tmp_path)


@pytest.mark.parametrize("where", [str, lambda folder: "."], ids=["absolute", "relative"])
def test_patterns_mean_stores_wherever_they_are(stores, monkeypatch, where):
    monkeypatch.chdir(stores)
    places, _ = opened(f"{where(stores)}/p*[19].store", f"{where(stores)}/part-10.store")
    names = [place.rpartition("/")[2] for place in places]
    assert names == ["part-9.store", "part-11.store", "part-10.store"]


def test_an_interrupted_fit_is_resumed_and_charged_once(bucket, ledger, tmp_path, monkeypatch):
    model, kept = tmp_path / "model.npz", tmp_path / "kept"
    given = ("fit", bucket, *PAID, *CLUSTER, "--ledger", ledger, "--checkpoint", kept)
    given += ("--model", model)
    call = resolve_name("dplasso.cluster.partitions.Partitions.call")

    calls = []

    def calling(self, method, *args):
        calls.append(method)
        if calls.count("sums") == 20:
            raise KeyboardInterrupt
        return call(self, method, *args)

    with monkeypatch.context() as patched:
        patched.setattr("dplasso.cluster.partitions.Partitions.call", calling)
        told = done(*given, code=130).stderr
    assert told.splitlines()[-1] == "interrupted, no result was written"
    before = read_checkpoint(kept)
    for path, resumed in ((kept, False), (model, True)):
        if resumed:
            after = found(*given, "--resume")["checkpoint"]["resumed_after"]
            assert after == int(before.state["done"]) > 10
        # Nobody has to know where the data lie.
        with np.load(path) as arrays:
            assert all(b"memory://" not in array.tobytes() for array in arrays.values())
            assert b"epsilon" in arrays["header"].tobytes()
    entries = dplasso.load(model).model_.released.entries[: len(before.released)]
    assert type(before.released)(entries).digest == before.released.digest
    assert len(charged_to(ledger)) == 1


STORES = "memory://bucket/stores"
STORE = f"{STORES}/part-10.store"


@pytest.mark.parametrize(
    ("address", "spoilt", "sentence"),
    [
        ("memory://nowhere/", None, "memory://nowhere: no store or folder of"),
        (STORES, "header.json", f"{STORE} is not a complete store: copy or convert it again, move"),
        (STORES, "labels.npy", f"{STORE} cannot be read: "),
        (STORES, "rows.indices.npy", f"{STORE}/rows.indices.npy is damaged: the checksum of bytes"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_and_costs_nothing(
    bucket, ledger, tmp_path, address, spoilt, sentence
):
    memory, place = fsspec.filesystem("memory"), f"/bucket/stores/part-10.store/{spoilt}"
    if spoilt == "rows.indices.npy":
        memory.pipe(place, memory.cat(place)[:-8] + b"\xff" * 8)
    elif spoilt is not None:
        memory.rm(place)
    model = ("--model", tmp_path / "model.npz")
    refused(run_command("fit", address, *PAID, *CLUSTER, "--ledger", ledger, *model), sentence)
    assert charged_to(ledger) == []
    assert not left_behind(tmp_path)


def emptied(place, file=None):
    shutil.rmtree(place)
    place.mkdir()
    if file is not None:
        (place / file).touch()


def on_a_disk_that_is_not_there(place):
    shutil.rmtree(place)
    place.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("spoil", "name"),
    [
        (lambda place: (place / "header.json").unlink(), "part-10.store"),
        (lambda place: emptied(place, ".rows.indices.npy.Xb81kq"), "part-10.store"),
        (emptied, "part-10.store"),
        (lambda place: place.rename(f"{place}.partial"), "part-10.store.partial"),
        (lambda place: shutil.copytree(place, f"{place}.replaced"), "part-10.store.replaced"),
        (on_a_disk_that_is_not_there, "part-10.store"),
        (lambda place: shutil.copytree(place, place.parent / "2024" / "part.store"), "2024"),
    ],
)
def test_an_incomplete_store_in_a_folder_is_refused_by_its_name(
    stores, ledger, tmp_path, spoil, name
):
    """Its records would be left out of a fit that is charged, or those of another count twice."""
    folder = shutil.copytree(stores, tmp_path / "copied")
    (folder / "notes").mkdir()
    assert len(opened(folder)[0]) == 3
    spoil(folder / "part-10.store")
    addresses = [folder]
    if spoil is not on_a_disk_that_is_not_there:
        addresses.append(f"file://{folder}")
    for address in addresses:
        sentence = f"{address}/{name} is not a complete store: copy or convert it again"
        made = ("--ledger", ledger, "--model", tmp_path / "model.npz")
        refused(run_command("fit", address, *PAID, *CLUSTER, *made), sentence)
    assert charged_to(ledger) == []


def test_stores_are_not_made_there_nor_read_by_a_fit_in_one_process(train, bucket):
    given = ("convert", train, "memory://bucket/made/away.store", "--features", 30)
    refused(run_command(*given), "copy the finished folder to object storage")
    alone = run_command("fit", bucket, *PAID)
    refused(alone, "only a fit on a cluster can read", "use --cluster threads")
