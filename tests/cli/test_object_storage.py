"""``--cluster`` on addresses of stores: as on a folder; what cannot be is one sentence."""

import json
import stat
import sys
import tempfile
from contextlib import contextmanager

import fsspec
import numpy as np
import pytest

import dplasso
from cli.conftest import refused
from dplasso.checkpoint import read_checkpoint
from dplasso.cli.clusters import open_stores
from dplasso.cli.output import Bars
from dplasso.cluster.partitions import Partitions
from dplasso.ledger import create_ledger, read_budgets

CLUSTER = ("--cluster", "threads")
PAID = ("--epsilon", "20", "--n-iter", "40", "--l1-radius", "10")
FIT = (*PAID, "--seed", "1")


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
    path = tmp_path / "team.ledger"
    create_ledger(path, 50.0, 1e-5, dataset="visits")
    return path


def n_charges(ledger):
    (budget,) = read_budgets(ledger)
    return len(budget.entries)


def left_behind(tmp_path):
    return list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("method", [FIT, ("--epsilon", "20", "--seed", "1", "--method=logistic")])
def test_a_fit_is_that_on_the_folder(run, stores, bucket, tmp_path, method):
    parts = [f"{bucket}/part-9.store/", f"file://{stores}/part-10.store", f"{bucket}/part-11.store"]
    models = []
    for number, data in enumerate(([stores], [f"{bucket}/"], [f"file://{stores}"], parts)):
        model = tmp_path / f"{number}.npz"
        result = run("fit", *data, *method, *CLUSTER, "--model", model, "--json")
        assert result.exit_code == 0, result.output
        report = json.loads(result.stdout)
        assert (report["n_samples"], report["n_features"]) == (800, 30)
        models.append(model.read_bytes())
    assert models[1:] == models[:1] * 3
    assert not left_behind(tmp_path)


def test_predictions_and_scores_are_those_of_the_folder(run, stores, bucket, tmp_path):
    model = tmp_path / "model.npz"
    assert run("fit", stores, *FIT, *CLUSTER, "--model", model).exit_code == 0
    for command in (("predict", "--proba"), ("predict",), ("evaluate", "--json")):
        found = [
            run(command[0], model, data, *command[1:], *CLUSTER) for data in (stores, f"{bucket}/")
        ]
        assert found[1].exit_code == 0, found[1].output
        assert found[1].stdout == found[0].stdout
    assert not left_behind(tmp_path)


def test_the_coordinator_copies_headers_and_labels_alone(stores, bucket, tmp_path, monkeypatch):
    memory, names, modes = fsspec.filesystem("memory"), [], set()
    opened = type(memory).open

    def opening(self, path, *args, **kwargs):
        names.append(path.rpartition("/")[2])
        for place in (tmp_path / "temporary").rglob("*"):
            modes.add((place.is_dir(), stat.S_IMODE(place.stat().st_mode)))
        return opened(self, path, *args, **kwargs)

    monkeypatch.setattr(type(memory), "open", opening)
    found, labels = open_stores([bucket])
    assert set(names) == {"header.json", "labels.npy"}
    assert modes == {(True, 0o700), (False, 0o600)}
    assert found.places == [f"{bucket}/part-{number}.store" for number in (9, 10, 11)]
    np.testing.assert_array_equal(labels, open_stores([str(stores)])[1])
    assert not left_behind(tmp_path)


def test_a_bar_shows_what_is_copied(run, stores, bucket, monkeypatch):
    moved, task = [], Bars.task

    @contextmanager
    def telling(self, label):
        with task(self, label) as update:
            yield lambda done, total: moved.append((label, done, total)) or update(done, total)

    monkeypatch.setattr(Bars, "task", telling)
    run("fit", stores, *FIT, *CLUSTER)
    assert "copying stores" not in {label for label, *_ in moved}
    run("fit", bucket, *FIT, *CLUSTER)
    size = sum(place.stat().st_size for place in stores.rglob("*.*") if place.is_file())
    assert [(done, total) for label, done, total in moved if "copying" in label][-1] == (size, size)


def test_an_interrupted_fit_is_resumed_and_charged_once(run, bucket, ledger, tmp_path, monkeypatch):
    model, kept = tmp_path / "model.npz", tmp_path / "kept"
    given = ("fit", bucket, *PAID, *CLUSTER, "--ledger", ledger, "--checkpoint", kept)
    given += ("--model", model)
    call = Partitions.call

    def calling(self, method, *args):
        if method == "move" and args[0] == 20:
            raise KeyboardInterrupt
        return call(self, method, *args)

    monkeypatch.setattr(Partitions, "call", calling)
    assert run(*given).exit_code == 130
    taken = read_checkpoint(kept).transcript
    monkeypatch.setattr(Partitions, "call", call)
    result = run(*given, "--resume", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["checkpoint"]["resumed_after"] == len(taken) > 10
    final = dplasso.load(model).transcript_
    assert final.vertex[: len(taken)].tolist() == taken.vertex.tolist()
    assert n_charges(ledger) == 1
    # Nobody has to know where the data lie.
    for path in (model, kept):
        with np.load(path) as arrays:
            assert all(b"memory://" not in array.tobytes() for array in arrays.values())
            assert b"epsilon" in arrays["header"].tobytes()


def damage(name, change):
    """Return what changes a file of the second store."""

    def damaging(memory):
        place = f"/bucket/stores/part-10.store/{name}"
        memory.pipe(place, change(memory.cat(place)))

    return damaging


STORE = "memory://bucket/stores/part-10.store"


@pytest.mark.parametrize(
    ("address", "spoil", "sentence"),
    [
        ("memory://nowhere/", None, "memory://nowhere: there is no such store, and no folder of"),
        (f"{STORE}/labels.npy", None, f"{STORE}/labels.npy: there is no such store, and"),
        ("nosuch://bucket/a", None, "nosuch://bucket/a cannot be read: Protocol not known"),
        (
            "memory://bucket/stores",
            damage("header.json", lambda data: data[:-9]),
            f"{STORE}/header.json is damaged: it is not JSON text",
        ),
        (
            "memory://bucket/stores",
            damage("labels.npy", lambda data: data[:-8]),
            f"{STORE}/labels.npy is damaged: ",
        ),
        (
            "memory://bucket/stores",
            lambda memory: memory.rm("/bucket/stores/part-10.store/labels.npy"),
            f"{STORE} cannot be read: ",
        ),
        (
            "memory://bucket/stores",
            damage("rows.indices.npy", lambda data: data[:-8] + b"\xff" * 8),
            f"{STORE}/rows.indices.npy is damaged: entry ",
        ),
    ],
)
def test_what_cannot_be_read_is_one_sentence_and_costs_nothing(
    run, bucket, ledger, tmp_path, address, spoil, sentence
):
    if spoil is not None:
        spoil(fsspec.filesystem("memory"))
    model = ("--model", tmp_path / "model.npz")
    refused(run("fit", address, *PAID, *CLUSTER, "--ledger", ledger, *model), sentence)
    assert n_charges(ledger) == 0
    assert not left_behind(tmp_path)


def test_a_damaged_store_is_named_by_its_address_when_scored(run, stores, bucket, tmp_path):
    model = tmp_path / "model.npz"
    run("fit", stores, *FIT, *CLUSTER, "--model", model)
    damage("rows.indptr.npy", lambda data: data[:-8])(fsspec.filesystem("memory"))
    for command in ("evaluate", "predict"):
        refused(run(command, model, bucket, *CLUSTER), f"{STORE}/rows.indptr.npy is damaged")
    assert not left_behind(tmp_path)


def test_a_store_by_two_addresses_counts_once(run, stores, bucket):
    for twice, sentence in (
        ((bucket, STORE), "is given twice"),
        ((bucket, f"file://{stores}"), "holds the same rows as another partition"),
    ):
        refused(run("fit", *twice, *FIT, *CLUSTER), sentence)


SECRET = "memory://AKIAEXAMPLE:wJalr/XUtn@bucket/stores"


@pytest.mark.parametrize(
    "address", [SECRET, "memory://bucket/stores?sig=wJalr&t=XUtn"], ids=["password", "signature"]
)
@pytest.mark.parametrize("command", ["fit", "evaluate", "predict", "convert"])
@pytest.mark.parametrize("cluster", [CLUSTER, ()], ids=["cluster", "alone"])
def test_a_password_in_an_address_is_refused_and_not_shown(
    run, model, bucket, command, address, cluster
):
    given = {
        "fit": (address, *FIT),
        "evaluate": (model, address),
        "predict": (model, address),
        "convert": (address, "away.store", "--features", "30"),
    }[command]
    result = run(command, *given, *cluster)
    refused(result, "memory://...")
    assert not any(secret in result.stderr for secret in ("wJalr", "XUtn"))
    with pytest.raises(ValueError, match=r"memory://\.\.\. holds a password") as told:
        dplasso.DPLogisticRegression(1.0).fit([address], engine=dplasso.cluster.ThreadEngine())
    assert "XUtn" not in str(told.value)


def test_what_needs_more_is_told(run, bucket, monkeypatch):
    refused(run("fit", bucket, *FIT), "only stores are read, and with a cluster: --cluster threads")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    refused(run("fit", bucket, *FIT, *CLUSTER), "pip install 'dplasso[storage]'")
