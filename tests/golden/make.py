"""Write the golden files: what version 0.1.0 computes and what its files look like.

(Seeded private draws in `fits.npz` are those since the selector hears of changes by columns; the
ledger and the checkpoint of its fit are of version 0.2.0.)

    python -m tests.golden.make [--overwrite]

They exist so that a change that must not change a released number can be held against them. Make
them anew only where a number is meant to change, and say so in the changelog.
"""

import argparse
import json
import os
import shutil
import socket
import sys
from contextlib import chdir, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.golden.cases import Data, binary, groups, kept_of, narrow, numbers_of, small, statements

from dplasso import DPLassoClassifier, open_store
from dplasso.checkpoint import fit_with_checkpoints, read_checkpoint
from dplasso.cli import main as command_line
from dplasso.privacy.ledger import (
    add_dataset,
    create_ledger,
    epsilon_total,
    largest_epsilon,
    read_budgets,
    reserve,
)

FILES = Path(__file__).parent / "files"
# What version 0.1.0 did where nothing was said.
FORMER = {"l1_radius": 10.0, "residual_bound": 1.0}
CHECKPOINTED = {**FORMER, "n_iter": 60, "l1_radius": 7.5, "epsilon": 5.0, "random_state": 20243}
CHARGED = {**FORMER, "n_iter": 60, "epsilon": 1.0, "dataset": "visits"}
FILED = {
    "private": {**FORMER, "n_iter": 60, "epsilon": 2.0},
    "plain": {**FORMER, "n_iter": 60, "epsilon": float("inf"), "feature_bound": 1.25},
}


class Interrupted(BaseException):
    """Stands for whatever ends a process."""


def convert(folder: Path) -> Path:
    """Convert the small data, as svmlight text, with the command line."""
    data, source = small(), folder / "rows.svm"
    lines = []
    for i, label in enumerate(data.y):
        row = data.X[[i]]
        pairs = zip(row.indices + 1, row.data, strict=True)
        lines.append(" ".join([str(label), *(f"{j}:{float(value)}" for j, value in pairs)]))
    source.write_text("\n".join(lines) + "\n")
    # The store notes what it was made of as it was given: no path of this machine.
    arguments = ["dplasso", "convert", source.name, "rows.store", "--features", "40"]
    with chdir(folder), patch.object(sys, "argv", arguments), suppress(SystemExit):
        command_line()
    source.unlink()
    return folder / "rows.store"


def named_rows() -> Data:
    """Make the rows of model files and of the ledger's fits, whose labels are words."""
    data = binary(narrow(small()))
    return Data(data.X, np.where(data.y > 0, "yes", "no"))


def ledger_report(path: Path) -> dict[str, Any]:
    """Return all that a ledger tells."""
    report = {}
    for budget in read_budgets(path):
        total = epsilon_total(budget.rho, budget.draw_delta, budget.delta)
        left = largest_epsilon(budget, delta=1e-7, n_iter=100)
        sums = {"rho": budget.rho, "draw_delta": budget.draw_delta, "total": total, "left": left}
        report[str(budget.name)] = asdict(budget) | sums
    return json.loads(json.dumps(report))


def model_report(model: DPLassoClassifier, X: Any) -> dict[str, np.ndarray]:
    """Return what a model file leads to, as arrays."""
    return vars(kept_of(model)) | {
        "margins": model.decision_function(X),
        "probabilities": model.predict_proba(X),
        "labels": model.predict(X),
    }


def interrupted_fit(options: dict[str, Any], data: Data, path: Path) -> None:
    """Fit until the checkpoint holds some of the steps."""
    replace = os.replace

    def stop_after(source: Any, target: Any, **rest: Any) -> None:
        replace(source, target, **rest)
        if Path(target) == path and len(read_checkpoint(path).transcript) > 10:
            raise Interrupted

    with patch("os.replace", stop_after), suppress(Interrupted):
        fit_with_checkpoints(DPLassoClassifier(**options), data.X, data.y, path, seconds=0)
    if not 10 < len(read_checkpoint(path).transcript) < options["n_iter"]:
        raise RuntimeError(f"{path} is not that of an interrupted fit")


def make_fits(folder: Path) -> None:
    """Write what is kept of all fits (equal arrays once) and the privacy statements."""
    names, places = [], []
    pools: dict[str, dict[bytes, np.ndarray]] = {}
    for group, run in groups(lambda: open_store(folder / "rows.store")).items():
        for case, fitted in run().items():
            names.append(f"{group}: {case}")
            place = []
            for kind, array in vars(fitted).items():
                pool = pools.setdefault(f"{kind} {array.size}", {})
                pool.setdefault(array.tobytes(), array)
                place.append(list(pool).index(array.tobytes()))
            places.append(place)
    arrays = {name: np.stack(list(pool.values())) for name, pool in pools.items()}
    arrays |= {"names": np.array(names), "places": np.array(places, dtype=np.int16)}
    np.savez_compressed(folder / "fits.npz", **arrays)
    write_json(folder / "statements.json", statements())


def make_models(folder: Path) -> None:
    """Write model files, what they predict and what they say."""
    data, said = named_rows(), {}
    for name, options in FILED.items():
        model = DPLassoClassifier(**options).fit(data.X, data.y)
        model.save(folder / f"{name}.model")
        said[name] = numbers_of(model.privacy_)
        np.savez_compressed(folder / f"{name}.npz", **model_report(model, data.X))
    write_json(folder / "models.json", said)


def make_ledger(folder: Path) -> None:
    """Write a ledger with charges that ended well, failed, and are open; and a checkpoint."""
    data, path = named_rows(), folder / "team.ledger"
    create_ledger(path, 3.0, 1e-5, dataset="visits")
    add_dataset(path, "patients", 1.0, 1e-6, neighbors="replace-one")
    common = {"n_iter": 20, "ledger": path}
    DPLassoClassifier(0.5, dataset="visits", **common).fit(data.X, data.y)
    DPLassoClassifier(0.25, 1e-7, dataset="patients", neighbors="replace-one", **common).fit(
        data.X, data.y
    )
    interrupted_fit(CHARGED | {"ledger": path}, data, folder / "charged.checkpoint")
    # A process that died: its charge stays open.
    reserve(path, "visits", read_budgets(path)[0].entries[0].charge)
    write_json(folder / "ledger.json", ledger_report(path))


def make_checkpoints(folder: Path) -> None:
    """Write the checkpoints of a fit that ended and of one that did not."""
    data = named_rows()
    model = DPLassoClassifier(**CHECKPOINTED)
    fit_with_checkpoints(model, data.X, data.y, folder / "complete.checkpoint")
    interrupted_fit(CHECKPOINTED, data, folder / "interrupted.checkpoint")
    np.savez_compressed(folder / "checkpointed.npz", **model_report(model, data.X))


def write_json(path: Path, values: Any) -> None:
    """Write values as JSON that is good to compare."""
    path.write_text(json.dumps(values, indent=1) + "\n")


def main() -> None:
    """Write all files, into a folder that must not be there."""
    parser = argparse.ArgumentParser(description="Write the golden files.")
    parser.add_argument("--overwrite", action="store_true", help="give up the files that are there")
    if FILES.exists() and not parser.parse_args().overwrite:
        sys.exit(f"{FILES} exists: its files are the guard; --overwrite makes new ones")
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir()
    # A ledger notes who charged it where.
    with (
        patch.dict(os.environ, {"LOGNAME": "curator"}),
        patch.object(socket, "gethostname", lambda: "server"),
    ):
        convert(FILES)
        make_fits(FILES)
        make_models(FILES)
        make_ledger(FILES)
        make_checkpoints(FILES)


if __name__ == "__main__":
    main()
