"""Files appear whole or not at all, one process at a time has them, and labels survive in them."""

import errno
import os
import stat
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.conftest import new_ledger, refused, run_command
from dplasso import (
    DPLogisticRegression,
    LedgerError,
    ModelFileError,
    StoreError,
    load,
    open_store,
    write_store,
)
from dplasso.checkpoint import fit_with_checkpoints
from dplasso.ledger import create_ledger
from dplasso.model import read_model, write_model
from model.files import rewrite

X, Y = np.eye(8), np.arange(8) % 2


@pytest.fixture(scope="module")
def model():
    return DPLogisticRegression(5.0, classes=[0, 1], random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    """The bytes of the model's file."""
    path = tmp_path_factory.mktemp("whole") / "m.npz"
    model.save(path)
    return path.read_bytes()


def names(directory):
    return sorted(path.name for path in directory.iterdir())


older = pytest.mark.parametrize("older", [None, b"old"])


@older
@pytest.mark.parametrize("kind", [str, Path])
def test_writes_the_file_and_nothing_else(model, whole, tmp_path, monkeypatch, kind, older):
    """Its bytes are on the disk before it has its name."""
    path, calls = tmp_path / "out.npz", []
    if older is not None:
        path.write_bytes(older)

    def noting(name, act):
        def noted(*arguments):
            calls.append((name, path.read_bytes() if path.exists() else None))
            return act(*arguments)

        return noted

    monkeypatch.setattr(os, "fsync", noting("fsync", os.fsync))
    monkeypatch.setattr(Path, "replace", noting("replace", Path.replace))
    model.save(kind(path))
    assert calls[:2] == [("fsync", older), ("replace", older)]
    assert path.read_bytes() == whole
    assert names(tmp_path) == ["out.npz"]


DURING = [(zipfile.ZipFile, "writestr"), (os, "fsync"), (Path, "replace")]
FULL = OSError(errno.ENOSPC, "No space left on device")


@older
@pytest.mark.parametrize("call", DURING, ids=lambda call: call[1])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError, OSError, FULL])
def test_an_interruption_leaves_what_was_there(model, tmp_path, monkeypatch, error, call, older):
    path, act, done = tmp_path / "out.npz", getattr(*call), []
    if older is not None:
        path.write_bytes(older)
    before = names(tmp_path)

    def interrupted(*arguments):
        done.append(arguments)
        # In the middle of the members.
        if call[1] != "writestr" or len(done) > 2:
            raise error
        return act(*arguments)

    monkeypatch.setattr(*call, interrupted)
    with pytest.raises(error if isinstance(error, type) else OSError) as caught:
        model.save(path)
    if error is FULL and call[1] != "replace":
        # As the system tells it, the error names no file.
        assert str(caught.value).startswith(f"[Errno 28] Cannot write {path}: the disk is full.")
    assert names(tmp_path) == before
    assert older is None or path.read_bytes() == older


def test_a_ledger_that_appears_meanwhile_is_left(tmp_path, monkeypatch):
    path = tmp_path / "l"
    monkeypatch.setattr(os, "fsync", lambda _: path.write_bytes(b"first"))
    with pytest.raises(LedgerError, match="exists already"):
        create_ledger(path, 1.0, 1e-5)
    assert path.read_bytes() == b"first"
    assert names(tmp_path) == ["l"]


def test_a_link_is_followed_and_a_bare_name_is_in_the_current_directory(
    model, whole, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("link", "out.npz"):
        model.save(name)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == (tmp_path / "out.npz").read_bytes() == whole
    assert names(tmp_path) == ["link", "out.npz", "real"]


def test_impossible_places_are_refused_at_once(model, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "rows.svm").write_text("not read")
    os.mkfifo(tmp_path / "pipe")
    create_ledger(tmp_path / "l", 1.0, 1e-5)
    for place, error, words in (
        (tmp_path / "missing" / "out.npz", FileNotFoundError, "there is no folder"),
        (tmp_path / "file" / "out.npz", OSError, "there is no folder"),
        (tmp_path, IsADirectoryError, "it is a folder"),
        (tmp_path / "pipe", OSError, "not a regular file"),
        (tmp_path / "l", LedgerError, "a ledger or its key"),
        (tmp_path / "l.key", LedgerError, "a ledger or its key"),
    ):
        with pytest.raises(error, match=rf"^Cannot write .*{words}"):
            model.save(place)
        with pytest.raises(error, match=rf"^Cannot write .*{words}"):
            fit_with_checkpoints(model, X, Y, place)
        refused(
            run_command("fit", tmp_path / "rows.svm", "--epsilon", 1, "--force", "--model", place),
            words,
        )
    assert names(tmp_path) == ["file", "l", "pipe", "rows.svm"]


def test_what_takes_no_file_is_found_out(model, tmp_path, monkeypatch):
    path, new = tmp_path / "out.npz", DPLogisticRegression(1.0, classes=[0, 1])
    path.write_bytes(b"old")
    # The tests may run as root, whom permission bits do not stop.
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        with pytest.raises(PermissionError, match="read-only"):
            fit_with_checkpoints(new, X, Y, path)
    for code in (errno.EACCES, errno.EROFS):
        error = OSError(code, os.strerror(code))

        def fail(*_, error=error, **__):
            raise error

        words = rf"Cannot write .*out.npz: the folder {tmp_path} cannot .*{error.strerror}"
        monkeypatch.setattr(Path, "touch", fail)
        with pytest.raises(type(error), match=words):
            fit_with_checkpoints(new, X, Y, path)
        monkeypatch.setattr(Path, "open", fail)
        with pytest.raises(type(error), match=words):
            model.save(path)
    assert not hasattr(new, "model_")


def test_writers_in_a_row_never_overlap(tmp_path):
    """Each removes the file it has locked; the next one must not take the removed file's lock."""
    inside, most = 0, 0

    def pause(*_):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.0005)
        inside -= 1

    def work():
        done = 0
        while done < 12:
            try:
                write_store(tmp_path / "s", X, Y, force=True, progress=pause)
                done += 1
            except StoreError:
                pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert names(tmp_path) == ["s"]
    assert open_store(tmp_path / "s", verify=True).shape == (8, 8)


def pairs(values):
    """Draw two different labels."""
    return st.lists(values, min_size=2, max_size=2, unique=True)


def with_labels(model, labels):
    return replace(model.model_, classes=labels, params=model.model_.params | {"classes": None})


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@settings(max_examples=40)
@given(
    labels=st.one_of(
        pairs(st.integers(-(2**63), 2**63 - 1)).map(lambda v: np.array(v, dtype=np.int64)),
        pairs(st.integers(0, 255)).map(lambda v: np.array(v, dtype=">u2")),
        pairs(st.floats(allow_nan=False, allow_infinity=False)).map(np.array),
        pairs(st.booleans()).map(lambda v: np.array(v, dtype=bool)),
        pairs(st.booleans()).map(lambda v: np.array(v, dtype=object)),
        pairs(TEXT).map(np.array),
        pairs(TEXT).map(lambda v: np.array(v, dtype=object)),
        pairs(TEXT).map(lambda v: np.array(v, dtype=np.dtypes.StringDType())),
    )
)
def test_any_labels_survive(model, tmp_path_factory, labels):
    path = tmp_path_factory.getbasetemp() / "labels.npz"
    write_model(with_labels(model, labels), path)
    with np.load(path) as file:
        assert file["classes"].dtype.kind in "biufU"
    found = read_model(path).classes
    assert found.dtype == labels.dtype
    assert found.tolist() == labels.tolist()
    assert [type(label) for label in found] == [type(label) for label in labels]


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        *((one, "plain") for one in (np.zeros((2, 1)), np.array([b"a", b"b"]), np.array([1j, 2j]))),
        *((one, "plain") for one in (np.array([0.0, np.nan]), np.array([1, 2], "M8[D]"))),
        *((np.array([0, 1]), kind) for kind in ("string", None, ["plain"])),
    ],
)
def test_arrays_that_are_no_labels_are_refused(model, tmp_path, labels, kind):
    """In a file whose checksum fits, as docs/model-file.md has it."""
    model.save(tmp_path / "m.npz")
    rewrite(tmp_path / "m.npz", lambda header: header.update(classes=kind), classes=labels)
    with pytest.raises(ModelFileError, match=r"damaged or incomplete: .*label"):
        load(tmp_path / "m.npz")


@pytest.mark.parametrize(
    "labels",
    [
        *(np.array(some, dtype=object) for some in ([0, "a"], [True, "a"], ["a", 1], [None, 1])),
        *(np.array([0.0, np.nan]), np.array([0.0, np.inf]), np.array([1j, 2j])),
    ],
)
def test_labels_of_other_kinds_are_refused(model, tmp_path, labels):
    with pytest.raises(ValueError, match="cannot be written to a model file"):
        write_model(with_labels(model, labels), tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


# --- whose files they are -------------------------------------------------------------------------


@pytest.fixture
def no_umask():
    """What holds records, or is the curator's, is its owner's alone, whatever the umask."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(place):
    """Return the rights of everything at a place."""
    inside = [place, *(place.rglob("*") if place.is_dir() else ())]
    return {(one.is_dir(), stat.S_IMODE(one.stat().st_mode)) for one in inside}


@pytest.mark.usefixtures("no_umask")
def test_a_store_is_its_owner_s_alone(tmp_path):
    write_store(tmp_path / "a.store", X, Y)
    assert modes(tmp_path / "a.store") == {(True, 0o700), (False, 0o600)}


@pytest.fixture
def fit(no_umask, tmp_path):
    """Return a ledger, a checkpoint, and what makes fits that write to both."""
    ledger, kept = tmp_path / "l", tmp_path / "kept"
    new_ledger(ledger, 3.0, 1e-5)

    def run(**options):
        model = DPLogisticRegression(0.5, classes=[0, 1], ledger=ledger)
        return fit_with_checkpoints(model, np.eye(40), np.arange(40) % 2, kept, **options)

    return ledger, kept, run


def test_a_ledger_its_key_and_a_checkpoint_but_not_a_model(fit, tmp_path):
    ledger, kept, run = fit
    model = run()
    for place in (ledger, Path(f"{ledger}.key"), kept):
        assert modes(place) == {(False, 0o600)}
    model.save(tmp_path / "m.npz")
    assert modes(tmp_path / "m.npz") == {(False, 0o666)}
    os.umask(0o077)
    model.save(tmp_path / "other.npz")
    assert modes(tmp_path / "other.npz") == {(False, 0o600)}


def test_rights_that_were_given_to_a_file_stay(fit):
    ledger, kept, run = fit
    run()
    for place in (ledger, kept):
        place.chmod(0o640)
    run(overwrite=True)
    for place in (ledger, kept):
        assert modes(place) == {(False, 0o640)}
