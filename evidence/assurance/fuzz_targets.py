"""What is fuzzed, and how a reading is judged.

A target reads one input and answers "accepted" or "refused". It raises `Misread` where a slow
reference reads something else, or where a refusal is not one sentence that names the file; any
other exception is a failure by itself.
"""

import gzip
import json
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

from dplasso import DPFrankWolfeClassifier, DPLassoClassifier, DPLogisticRegression
from dplasso.checkpoint.session import read_checkpoint, write_checkpoint
from dplasso.encoding.hashed import Hashed
from dplasso.encoding.origin import Origin
from dplasso.encoding.schema import Schema
from dplasso.errors import CheckpointError, DataError, ModelFileError
from dplasso.model import read_model, write_model
from dplasso.phases.released import Released
from dplasso.phases.releases import Drawn
from evidence.assurance import fuzz_mutations as corrupt
from evidence.assurance.fuzz_matrices import (
    check_compressed,
    check_npz,
    check_svmlight,
    compressed_seeds,
    corrupt_compressed,
    npz_seeds,
    svmlight_seeds,
)
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


# --- model and checkpoint ----------------------------------------------------------------


@cache
def _fitted() -> tuple[Any, ...]:
    """Return fits: three of the paper's loop, one with vertices and a refit, and one with cuts."""
    rng = np.random.default_rng(1)
    X, y = (rng.random((20, 5)) < 0.5).astype(np.float32), np.arange(20) % 2
    wide = (rng.random((20, 300)) < 0.1).astype(np.float32)
    drawn: dict[str, Any] = {"n_iter": 7, "random_state": 0}
    drawn |= {"fit_intercept": False, "n_records": 20}  # Nothing but vertices is released.
    named = DPFrankWolfeClassifier(classes=["no", "yes"], **drawn)
    exact = DPFrankWolfeClassifier(math.inf, n_iter=5, fit_intercept=False)
    return (
        DPFrankWolfeClassifier(**drawn).fit(X, y),
        named.fit(X, np.where(y, "yes", "no")),
        exact.fit(X, y),
        DPLassoClassifier(50.0, max_weights=3, random_state=0).fit(wide, y),
        DPLogisticRegression(50.0, max_weights=2, random_state=0).fit(wide[:, :40], y),
    )


def _written(write: Callable[[Path], object]) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed"
        write(path)
        return path.read_bytes()


@cache
def _model_seeds() -> list[bytes]:
    seeds = [_written(model.save) for model in _fitted()]
    model = replace(_fitted()[0].model_, origin=Origin(Schema((Hashed(("c",), 2, "column"),))))
    return [*seeds, _written(partial(write_model, model))]


@cache
def _checkpoint_seeds() -> list[bytes]:
    from dplasso.checkpoint.session import _NOT_STORED, Checkpoint

    seeds = []
    for model in _fitted():
        entries, ones = model.model_.released.entries, np.ones(3)
        place, state = len(entries) - 1, dict.fromkeys(("weights", "velocity", "averaged"), ones)
        for k, entry in enumerate(entries):
            if isinstance(entry.release, Drawn):
                place = k
                state = {"vertex": entry.release.vertex[:3], "sign": entry.release.sign[:3]}
        state["done"] = np.array(3)
        # Under way in one phase, and all phases done.
        for n_done, under_way in ((place, state), (len(entries), {})):
            checkpoint = Checkpoint(
                {k: v for k, v in model.get_params().items() if k not in _NOT_STORED},
                Released(entries[:n_done]),
                model.privacy_,
                model.classes_,
                model.n_features_in_,
                n_phases=len(entries),
                state=under_way,
            )
            seeds.append(_written(partial(write_checkpoint, checkpoint)))
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
    drawn = parts.released.last(Drawn)
    if drawn is not None and drawn.vertex.size:
        last = drawn.n_outputs * drawn.per_output
        if not 0 <= drawn.vertex.min() <= drawn.vertex.max() < last:
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
    from dplasso.data.store import write_blocks

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
            write_blocks(source, path)
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

_KEPT = ("--checkpoint", "kept", "--resume")
_STEPS = ("--epsilon", "1", "--method", "frank-wolfe", "--n-iter", "5")
_COMMANDS = (
    ["fit", "train.svm", "--epsilon", "1"],
    ["fit", "data.npz", "--epsilon", "1", "--model", "new.npz", "--json"],
    ["fit", "train.svm", *_STEPS, "--checkpoint", "new", "--seed", "1"],
    ["fit", "train.svm", *_STEPS, *_KEPT],
    ["predict", "model.npz", "test.svm"],
    ["evaluate", "model.npz", "test.svm", "--json"],
    ["budget", *_STEPS],
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
        "data.npz": npz_seeds()[0],
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
    lines, before = result.stderr.splitlines(), ("warning:", "caution (")
    told = [line for line in lines if not line.startswith(before)]
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
    Target("svmlight", 40, svmlight_seeds, corrupt.corrupt_text, check_svmlight),
    Target("compressed", 8, compressed_seeds, corrupt_compressed, check_compressed),
    Target("npz", 20, npz_seeds, corrupt.corrupt_npz, check_npz),
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
