"""What is fuzzed, and how a reading is judged.

A target reads one input and answers "accepted" or "refused". It raises `Misread` where a slow
reference reads something else, or where a refusal is not one sentence that names the file; any
other exception is a failure by itself.
"""

import bz2
import gzip
import json
import lzma
import math
import os
import random
import shutil
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import zstandard

from dplasso import DPLassoClassifier
from dplasso.checkpoint.format import read_checkpoint, write_checkpoint
from dplasso.data.npz import read_npz, write_npz
from dplasso.data.svmlight.reader import read_svmlight
from dplasso.encoding.origin import Origin
from dplasso.encoding.parts import Hashed
from dplasso.encoding.schema import Schema
from dplasso.errors import CheckpointError, DataError, ModelFileError
from dplasso.model import read_model, write_model
from dplasso.model.staged import StagedRelease
from evidence.assurance import fuzz_mutations as corrupt
from evidence.assurance.fuzz_tables import (
    Misread,
    check_ledger,
    check_schema,
    check_table,
    check_text,
    corrupt_named,
    ledger_seeds,
    refused,
    schema_seeds,
    table_seeds,
    text_seeds,
)
from evidence.reference.svmlight import BadLineError, svmlight_records


@dataclass(frozen=True)
class Target:
    """One thing to fuzz.

    `share` is that of the inputs, relative to the other targets; `seeds` are the valid inputs,
    `corrupt` changes one, and `check` takes an input and an empty folder and returns "accepted" or
    "refused".
    """

    name: str
    share: int
    seeds: Callable[[], list[bytes]]
    corrupt: corrupt.Mutate
    check: Callable[[bytes, Path], str]


def input_of(target: Target, seed: int, index: int) -> bytes:
    """Make the input of that number; the same on every machine."""
    rng = random.Random(f"{target.name}/{seed}/{index}")
    data = rng.choice(target.seeds())
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        try:
            data = target.corrupt(data, rng)
        except Exception:
            # What is no zip or JSON any more is corrupted as bytes.
            data = corrupt.corrupt_bytes(data, rng)
    return data


# --- svmlight ----------------------------------------------------------------------------

_SVMLIGHT = (
    b"1 1:0.5 3:1 7:-2.25\n-1 2:1e-3 # remark\n\n+1 1:1 2:.5 3:5. 40:3.14159265358979\n",
    b"0 qid:3 1:1 2:2\n1 qid:4 3:1\n2.5 1:123456789012345678901\n",
    b"1\n0 1:1\r\n1 2:0\n",
    b"-1 1:0.1000000000000000055 5:16777217 6:1e-45 7:1.17549435e-38\n1 2147483648:1",
)


def _svmlight_seeds() -> list[bytes]:
    return list(_SVMLIGHT)


def _same_records(X: Any, y: Any, records: list[Any], path: Path) -> None:
    labels = np.array([label for label, _ in records])
    columns = [column for _, entries in records for column, _ in entries]
    values = np.array([value for _, entries in records for _, value in entries], np.float32)
    lengths = [len(entries) for _, entries in records]
    if not (
        y.tobytes() == labels.astype(np.float64).tobytes()
        and X.indices.tolist() == columns
        and X.data.tobytes() == values.tobytes()
        and np.diff(X.indptr).tolist() == lengths
        and X.shape == (len(records), 1 + max(columns))
    ):
        raise Misread(f"{path.name} was read as something else")


def _svmlight(data: bytes, path: Path, text: bytes | None) -> str:
    """Compare the reader with the slow one; `text` is None where the stream is damaged."""
    try:
        records = None if text is None else svmlight_records(text)
        line = 0
    except BadLineError as error:
        records, line = None, error.args[0]
    path.write_bytes(data)
    try:
        X, y = read_svmlight(path, block_bytes=random.Random(data).choice((1, 7, 64, 1 << 20)))
    except DataError as error:
        if records and any(entries for _, entries in records):
            # Only a stream may be refused for what is no text: another format's first bytes.
            if "the content is" not in str(error):
                raise Misread(f"a good file was refused: {error}") from error
        elif line and f"line {line}:" not in str(error) and "the content is" not in str(error):
            raise Misread(f"line {line} is the bad one: {error}") from error
        return refused(error, path)
    if records is None:
        raise Misread("a bad file was read")
    _same_records(X, y, records, path)
    return "accepted"


def _check_svmlight(data: bytes, folder: Path) -> str:
    return _svmlight(data, folder / "input.svm", data)


_COMPRESSIONS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    ".gz": (lambda data: gzip.compress(data, mtime=0), gzip.decompress),
    ".bz2": (bz2.compress, bz2.decompress),
    ".xz": (lzma.compress, lzma.decompress),
    ".zst": (zstandard.ZstdCompressor(write_checksum=True).compress, None),  # type: ignore[dict-item]
}


@cache
def _compressed_seeds() -> list[bytes]:
    texts = (_SVMLIGHT[0], _SVMLIGHT[3], b"1 1:1 5:2\n" * 300)
    return [
        suffix.encode() + b"|" + squeeze(text)
        for suffix, (squeeze, _) in _COMPRESSIONS.items()
        for text in texts
    ] + [b".gz|" + gzip.compress(texts[0], mtime=0) + gzip.compress(texts[1], mtime=0)]


def _corrupt_compressed(data: bytes, rng: random.Random) -> bytes:
    suffix, _, rest = data.partition(b"|")
    return suffix + b"|" + corrupt.corrupt_bytes(rest, rng)


def _check_compressed(data: bytes, folder: Path) -> str:
    suffix, bar, rest = data.partition(b"|")
    name = suffix.decode(errors="replace")
    if not bar or name not in _COMPRESSIONS:
        name, rest = ".gz", data
    text: bytes | None
    if name == ".zst":
        text = _unzstd(rest)
    else:
        try:
            text = _COMPRESSIONS[name][1](rest)
        except Exception:
            text = None
    path = folder / f"input.svm{name}"
    if text is not None:
        return _svmlight(rest, path, text)
    path.write_bytes(rest)
    try:
        read_svmlight(path)
    except DataError as error:
        return refused(error, path)
    raise Misread("a damaged stream was read")


def _unzstd(data: bytes) -> bytes | None:
    """Decompress frame by frame; None where one is damaged or cut short."""
    parts = []
    while data:
        frame = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
        try:
            parts.append(frame.decompress(data))
        except zstandard.ZstdError:
            return None
        if not frame.eof:
            return None
        data = frame.unused_data
    return b"".join(parts)


# --- npz ---------------------------------------------------------------------------------


@cache
def _npz_seeds() -> list[bytes]:
    import io
    import tempfile

    rng = np.random.default_rng(0)
    X = sp.random_array((6, 9), density=0.4, rng=rng, format="csr", dtype=np.float32)
    seeds = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed.npz"
        for labels in (np.arange(6) % 2, np.array(list("ababab"))):
            write_npz(path, X, labels)
            seeds.append(path.read_bytes())
    for layout in ("csr", "csc", "coo"):
        buffer = io.BytesIO()
        sp.save_npz(buffer, X.asformat(layout), compressed=False)
        members = corrupt.members_of(buffer.getvalue())
        members["y.npy"] = corrupt.npy(np.arange(6) % 2)
        seeds.append(corrupt.packed(members))
    return seeds


def _check_npz(data: bytes, folder: Path) -> str:
    path = folder / "input.npz"
    path.write_bytes(data)
    try:
        X, y = read_npz(path)
    except DataError as error:
        return refused(error, path)
    if X.indices.size and not (X.indices.min() >= 0 and X.indices.max() < X.shape[1]):
        raise Misread("a column is out of range")
    if X.shape[0] != y.size or X.indptr[-1] != X.data.size or not np.isfinite(X.data).all():
        raise Misread("the arrays do not fit each other")
    with np.load(path, allow_pickle=False) as arrays:
        shape, triples = _plainly(arrays)
        labels = arrays["y" if "y" in arrays else "labels"]
    ours = X.tocoo()
    if (
        shape != X.shape
        or triples != _triples(ours.row, ours.col, ours.data)
        or labels.tolist() != y.tolist()
    ):
        raise Misread("numpy alone reads another matrix")
    return "accepted"


def _plainly(arrays: Any) -> tuple[tuple[int, ...], list[tuple[int, int, float]]]:
    """Read the layout of scipy's .npz entry by entry."""
    layout = arrays["format"].item()
    layout = layout.decode() if isinstance(layout, bytes) else layout
    if layout == "coo":
        major, minor = arrays["row"].tolist(), arrays["col"].tolist()
    else:
        lengths = np.diff(arrays["indptr"].tolist())
        major = np.repeat(np.arange(lengths.size), lengths).tolist()
        minor = arrays["indices"].tolist()
    rows, columns = (minor, major) if layout == "csc" else (major, minor)
    return tuple(arrays["shape"].tolist()), _triples(rows, columns, arrays["data"])


def _triples(rows: Any, columns: Any, data: Any) -> list[tuple[int, int, float]]:
    return sorted(zip(map(int, rows), map(int, columns), map(float, data), strict=True))


# --- model and checkpoint ----------------------------------------------------------------


@cache
def _fitted() -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    X, y = (rng.random((20, 5)) < 0.5).astype(np.float32), np.arange(20) % 2
    drawn: dict[str, Any] = {"n_iter": 7, "l1_radius": 10.0, "random_state": 0}
    named = DPLassoClassifier(classes=["no", "yes"], **drawn)
    exact = DPLassoClassifier(math.inf, n_iter=5, l1_radius=10.0, fit_intercept=False)
    return (
        DPLassoClassifier(**drawn).fit(X, y),
        named.fit(X, np.where(y, "yes", "no")),
        exact.fit(X, y),
    )


@cache
def _staged() -> Any:
    """Return a fit that counts, draws columns and refits them."""
    rng = np.random.default_rng(1)
    X = (rng.random((20, 9)) < 0.5).astype(np.float32)
    model = DPLassoClassifier(8.0, n_iter=3, refit=0.5, random_state=0)
    return model.fit(X, np.arange(20) % 2)


def _written(write: Callable[[Path], object]) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed"
        write(path)
        return path.read_bytes()


@cache
def _model_seeds() -> list[bytes]:
    seeds = [_written(model.save) for model in (*_fitted(), _staged())]
    model = replace(_fitted()[0].model_, origin=Origin(Schema((Hashed(("c",), 2, "column"),))))
    return [*seeds, _written(partial(write_model, model))]


@cache
def _checkpoint_seeds() -> list[bytes]:
    from dplasso.checkpoint.format import Checkpoint
    from dplasso.checkpoint.session import _stored
    from dplasso.frank_wolfe.transcript import Transcript
    from dplasso.gradient_descent.state import empty_state

    held = []
    for model, steps, finished in zip(_fitted(), (3, 7, 5), (False, True, False), strict=True):
        taken = model.transcript_
        part = Transcript(taken.vertex[:steps], taken.sign[:steps])
        held.append((model, replace(model.model_.release, transcript=part), finished))
    staged = _staged()
    whole = staged.model_.release
    counted = replace(whole, done=1 + len(whole.vertices), weights=None)
    refitting = replace(counted, weights=empty_state(whole.columns.size))
    held += [(staged, counted, False), (staged, refitting, False), (staged, whole, True)]
    seeds = []
    for model, release, finished in held:
        checkpoint = Checkpoint(
            _stored(model.get_params()),
            release,
            model.privacy_,
            model.classes_,
            model.n_features_in_,
            finished=finished,
        )
        seeds.append(_written(lambda path, held=checkpoint: write_checkpoint(held, path)))
    return seeds


def _check_archive(
    data: bytes,
    path: Path,
    read: Callable[[Path], Any],
    write: Callable[[Any, Path], None],
    error_class: type[Exception],
) -> str:
    path.write_bytes(data)
    try:
        parts = read(path)
    except error_class as error:
        return refused(error, path)
    release = parts.release
    drawn = release.vertices if isinstance(release, StagedRelease) else release
    taken, last = drawn.transcript, parts.n_features + int(drawn.fit_intercept)
    if len(taken) and not (taken.vertex.min() >= 0 and taken.vertex.max() < last):
        raise Misread("a vertex is out of range")
    again = path.with_name("again")
    write(parts, again)
    # What was accepted holds together: written and read again it is the same.
    if repr(read(again)) != repr(parts):
        raise Misread("it does not survive being written and read")
    return "accepted"


def _check_model(data: bytes, folder: Path) -> str:
    from dplasso import load

    path = folder / "model.npz"
    outcome = _check_archive(data, path, read_model, write_model, ModelFileError)
    if outcome == "accepted":
        try:
            model = load(path)
        except ModelFileError as error:
            return refused(error, path)
        if not np.isfinite(model.coef_.data).all():
            raise Misread("the weights are not finite")
    return outcome


def _check_checkpoint(data: bytes, folder: Path) -> str:
    return _check_archive(data, folder / "kept", read_checkpoint, write_checkpoint, CheckpointError)


# --- store -------------------------------------------------------------------------------


@cache
def _store_seeds() -> list[bytes]:
    import tempfile

    from dplasso.data.blocks import BlockSource, RowBlock
    from dplasso.data.store import write_store

    rng = np.random.default_rng(0)
    seeds = []
    for constant in (False, True):
        X = sp.random_array((6, 9), density=0.4, rng=rng, format="csr", dtype=np.float32)
        if constant:
            X.data[:] = 1
        X.sort_indices()
        block = RowBlock(X.indptr.astype(np.int64), X.indices, X.data, np.arange(6) % 2)
        source = BlockSource("seed", 9, lambda *_, b=block, **__: iter([b]), None)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "seed.store"
            write_store(source, path)
            seeds.append(
                corrupt.packed({file.name: file.read_bytes() for file in sorted(path.iterdir())})
            )
    return seeds


def _check_store(data: bytes, folder: Path) -> str:
    from dplasso.data.store import open_store

    try:
        members = corrupt.members_of(data)
    except Exception:
        return "refused"  # corrupted as bytes: no folder at all
    path = folder / "input.store"
    path.mkdir()
    for name, content in members.items():
        (path / Path(name).name).write_bytes(content)
    try:
        store = open_store(path, verify=True)
        X = store.X.tocsr()
    except DataError as error:
        return refused(error, path)
    for seed in _store_seeds():
        whole = folder / "whole.store"
        shutil.rmtree(whole, ignore_errors=True)
        whole.mkdir()
        for name, content in corrupt.members_of(seed).items():
            (whole / name).write_bytes(content)
        original = open_store(whole)
        same = (original.X.tocsr() != X).nnz == 0 if original.shape == X.shape else False
        if same and np.array_equal(original.y, store.y):
            return "accepted"
    raise Misread("a damaged store was opened and verified")


# --- command line ------------------------------------------------------------------------

_COMMANDS = (
    ["fit", "train.svm", "--epsilon", "1", "--n-iter", "5"],
    ["fit", "data.npz", "--epsilon", "1", "--n-iter", "5", "--model", "new.npz", "--json"],
    ["fit", "train.svm", "--epsilon", "1", "--n-iter", "5", "--checkpoint", "new", "--seed", "1"],
    ["fit", "train.svm", "--epsilon", "1", "--n-iter", "5", "--checkpoint", "kept", "--resume"],
    ["predict", "model.npz", "test.svm"],
    ["evaluate", "model.npz", "test.svm", "--json"],
    ["budget", "--epsilon", "1", "--n-iter", "5"],
    ["convert", "train.svm", "new", "--json"],
    ["data", "info", "data.store", "--verify"],
    ["ledger", "show", "team.ledger", "--json"],
    ["ledger", "plan", "team.ledger", "--fits", "3"],
    ["fit", "train.svm", "--epsilon", "0.1", "--ledger", "team.ledger", "--model", "new.npz"],
)


def _command_seeds() -> list[bytes]:
    return [json.dumps(command).encode() for command in _COMMANDS]


@cache
def _command_files() -> dict[str, bytes]:
    text = b"1 1:1 3:1\n0 2:1 4:0.5\n1 1:0.5 4:1\n0 2:1 3:2\n" * 5
    model = _model_seeds()[0]
    return {
        "train.svm": text,
        "test.svm": text[:40],
        "train.svm.gz": gzip.compress(text),
        "data.npz": _npz_seeds()[0],
        "model.npz": model,
        "kept": _checkpoint_seeds()[0],
        "team.ledger": ledger_seeds()[1],
        "empty": b"",
    }


def _check_command(data: bytes, folder: Path) -> str:
    from typer.testing import CliRunner

    from dplasso.cli.app import app

    arguments = json.loads(data)
    files = _command_files()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "data.store").mkdir()
    for name, content in corrupt.members_of(_store_seeds()[0]).items():
        (folder / "data.store" / name).write_bytes(content)
    with chdir(folder):
        result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    told = [line for line in result.stderr.splitlines() if not line.startswith("warning:")]
    if result.exit_code not in (0, 1, 2):
        raise Misread(f"exit code {result.exit_code}")
    if result.exit_code == 1 and not (len(told) == 1 and told[0].startswith("error: ")):
        raise Misread(f"told {result.stderr!r}")
    if "Traceback" in result.output:
        raise Misread("a traceback")
    if result.exit_code == 0:
        return "accepted"
    for name in os.listdir(folder):  # noqa: PTH208
        # A fit that was charged and then failed has made the key of fingerprints.
        if name not in (*files, "new", "data.store", "team.ledger.key"):
            raise Misread(f"it failed and left {name}")
    return "refused"


# --- all of them -------------------------------------------------------------------------

_ALL = (
    Target("svmlight", 40, _svmlight_seeds, corrupt.corrupt_text, _check_svmlight),
    Target("compressed", 8, _compressed_seeds, _corrupt_compressed, _check_compressed),
    Target("npz", 20, _npz_seeds, corrupt.corrupt_npz, _check_npz),
    Target("model", 14, _model_seeds, corrupt.corrupt_archive, _check_model),
    Target("checkpoint", 14, _checkpoint_seeds, corrupt.corrupt_archive, _check_checkpoint),
    Target("store", 10, _store_seeds, corrupt.corrupt_folder, _check_store),
    Target("table", 8, table_seeds, corrupt_named, check_table),
    Target("schema", 6, schema_seeds, corrupt.corrupt_json, check_schema),
    Target("text", 8, text_seeds, corrupt_named, check_text),
    Target("ledger", 6, ledger_seeds, corrupt.corrupt_bytes, check_ledger),
    Target("command line", 4, _command_seeds, corrupt.corrupt_command, _check_command),
)


def targets() -> dict[str, Target]:
    """Return the targets by name."""
    return {target.name: target for target in _ALL}
