"""Write the golden files: what version 0.2.0 computes and what its files look like.

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
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from tests.golden.cases import (
    BOUNDS,
    CASES,
    DESCENT,
    LASSO,
    N_COLUMNS,
    Case,
    Data,
    costs,
    fit,
    kept_of,
    make_data,
    numbers_of,
    signs,
    small,
)

from dplasso import (
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    PublicEncoder,
    load,
    open_store,
)
from dplasso.checkpoint import fit_with_checkpoints, read_checkpoint, session
from dplasso.cli import main as command_line
from dplasso.encoding.parts import Bins, Categories, Number, Text
from dplasso.encoding.schema import Schema
from dplasso.ledger import (
    add_dataset,
    create_ledger,
    epsilon_total,
    largest_epsilon,
    read_budgets,
    reserve,
)
from dplasso.runtime import chunks

FILES = Path(__file__).parent / "files"

UNSEEDED = {"random_state": None}
SHORT = LASSO | {"n_iter": 20}
SCHEMA = Schema(
    (
        Categories("ward", ("bones", "eyes", "heart")),
        Bins("age", (18, 65)),
        Number("score", 8.0),
        Text("note", 4),
    ),
    "y",
)
# Model files; of default LASSO fits too.
MODELS = {
    "lasso": Case(DPLassoClassifier, SHORT | UNSEEDED, "labels"),
    "lasso-seeded": Case(DPLassoClassifier, SHORT | {"classes": ["no", "yes"]}, "labels"),
    "lasso-not-private": Case(DPLassoClassifier, SHORT | {"epsilon": inf}, "labels"),
    "lasso-classes": Case(DPLassoClassifier, SHORT | {"residual_bound": 0.5}, "four classes"),
    "lasso-default": Case(DPLassoClassifier, {"epsilon": 8.0, "n_iter": 12}, "labels"),
    "lasso-default-classes": Case(DPLassoClassifier, {"epsilon": 8.0}, "four classes"),
    "lasso-regression": Case(DPLasso, {"epsilon": 8.0, "n_iter": 12, **BOUNDS}, "numbers"),
    "logistic": Case(DPLogisticRegression, {"epsilon": 2.0}, "labels"),
    "logistic-classes": Case(DPLogisticRegression, DESCENT | {"max_weights": 8}, "four classes"),
    "linear": Case(DPLinearRegression, DESCENT | {"row_norm": 2.0, **BOUNDS}, "numbers"),
    "table": Case(DPLogisticRegression, {"epsilon": 2.0}, "table"),
}
# Checkpoints of fits that go on, and after how many of their writes they were killed.
INTERRUPTED = {
    "lasso": (Case(DPLassoClassifier, LASSO, "labels"), 20),
    "lasso-unseeded": (Case(DPLassoClassifier, LASSO | UNSEEDED, "labels"), 20),
    "lasso-drawing": (Case(DPLassoClassifier, {"epsilon": 8.0, "n_iter": 12}, "labels"), 8),
    "lasso-refitting": (Case(DPLassoClassifier, {"epsilon": 8.0, "n_iter": 12}, "labels"), 60),
    "logistic": (Case(DPLogisticRegression, DESCENT | {"n_iter": 30}, "labels"), 12),
    "logistic-unseeded": (Case(DPLogisticRegression, {"n_iter": 30}, "labels"), 12),
    "short-list": (Case(DPLogisticRegression, {"max_weights": 8}, "four classes"), 100),
}
# What those that repeat themselves end in; and one checkpoint that has nothing left to do.
REPEATED = ("lasso", "logistic", "complete")
COMPLETE = INTERRUPTED["lasso"][0]
CHARGED = Case(
    DPLassoClassifier, SHORT | {"epsilon": 1.0, "dataset": "visits", "random_state": None}, "labels"
)


class Killed(BaseException):
    """Stands for whatever ends a process."""


def open_golden_store() -> Any:
    """Open the store of the small rows."""
    return open_store(FILES / "rows.store")


def data_of(case: Case) -> Data:
    """Make the data of a case, here also with labels that are words, and a table."""
    data = small()
    if case.data == "labels":
        return Data(data.X, np.where(signs(data.y) > 0, "yes", "no"))
    if case.data == "table":
        return Data(PublicEncoder(SCHEMA).fit_transform(table()), signs(data.y))
    return make_data(case.data, open_golden_store)


def table() -> pd.DataFrame:
    """Return the small rows as a table of people."""
    y = small().y
    i = np.arange(y.size)
    notes = np.array(["", "chest pain", "fine"])
    wards = np.array(["bones", "eyes", "heart", "kitchen"])
    return pd.DataFrame(
        {"ward": wards[i % 4], "age": 5.0 + i % 90, "score": y, "note": notes[i % 3]}
    )


def convert(folder: Path) -> Path:
    """Convert the small rows, as svmlight text, with the command line."""
    data, source = small(), folder / "rows.svm"
    lines = []
    for i, label in enumerate(signs(data.y)):
        row = data.X[[i]]
        pairs = zip(row.indices + 1, row.data, strict=True)
        lines.append(" ".join([str(label), *(f"{j}:{float(value)}" for j, value in pairs)]))
    source.write_text("\n".join(lines) + "\n")
    # The store notes what it was made of as it was given: no path of this machine.
    arguments = ["dplasso", "convert", source.name, "rows.store", "--features", str(N_COLUMNS)]
    with chdir(folder), patch.object(sys, "argv", arguments), suppress(SystemExit):
        command_line()
    source.unlink()
    return folder / "rows.store"


def ledger_report(path: Path) -> dict[str, Any]:
    """Return what a ledger tells of its budgets, without fingerprints."""
    report = {}
    for budget in read_budgets(path):
        total = epsilon_total(budget.rho, budget.draw_delta, budget.delta)
        left = largest_epsilon(budget, delta=1e-7, n_iter=100)
        sums = {"rho": budget.rho, "draw_delta": budget.draw_delta, "total": total, "left": left}
        told = asdict(budget) | sums
        for entry in told["entries"]:
            entry["charge"].pop("fingerprint")
            entry.pop("process")
        report[str(budget.name)] = told
    return json.loads(json.dumps(report))


def model_report(model: Any, data: Data) -> dict[str, np.ndarray]:
    """Return what a fitted model leads to, as arrays."""
    report = kept_of(model)
    predicts = getattr(model, "decision_function", model.predict)
    report["margins"] = predicts(data.X).ravel()[:40]
    if hasattr(model, "predict_proba"):
        report["probabilities"] = model.predict_proba(data.X).ravel()[:40]
    return report


def write_reports(path: Path, reports: dict[str, dict[str, np.ndarray]]) -> None:
    """Write what models lead to, one array after the other."""
    arrays = {f"{name}: {kind}": a for name, kept in reports.items() for kind, a in kept.items()}
    np.savez_compressed(
        path,
        names=np.array(list(arrays)),
        sizes=np.array([array.size for array in arrays.values()]),
        values=np.concatenate(list(arrays.values()), dtype="<f8"),
    )


def read_reports(path: Path) -> dict[str, dict[str, np.ndarray]]:
    """Read what `write_reports` wrote."""
    reports: dict[str, dict[str, np.ndarray]] = {}
    with np.load(path, allow_pickle=False) as file:
        parts = np.split(file["values"], np.cumsum(file["sizes"])[:-1])
        for whole, array in zip(file["names"].tolist(), parts, strict=True):
            name, kind = whole.rsplit(": ", 1)
            reports.setdefault(name, {})[kind] = array
    return reports


def killed_fit(case: Case, path: Path, writes: int, **changes: Any) -> None:
    """Fit until the checkpoint has been written so often."""
    written, original, data = 0, session.write_checkpoint, data_of(case)

    def write(*arguments: Any, **options: Any) -> None:
        nonlocal written
        original(*arguments, **options)
        written += 1
        if written == writes:
            raise Killed

    with (
        patch.object(session, "write_checkpoint", write),
        patch.object(chunks, "_CHUNK_SECONDS", 0.0),
        suppress(Killed),
    ):
        fit_with_checkpoints(
            case.estimator(**case.options | changes), data.X, data.y, path, seconds=0
        )
    stored = read_checkpoint(path)
    if not 0 < len(stored.release) < stored.statement.steps:
        raise RuntimeError(f"{path} is not that of an interrupted fit")


def make_fits(folder: Path) -> None:
    """Write what is kept of all fits and what their statements say."""
    reports, said = {}, {}
    for group, cases in CASES.items():
        for name, case in cases.items():
            model = fit(case, make_data(case.data, open_golden_store))
            reports[f"{group}: {name}"] = kept_of(model)
            said[f"{group}: {name}"] = numbers_of(model.privacy_)
    write_reports(folder / "fits.npz", reports)
    write_statements(folder / "statements.json", said)
    lines = ",\n".join(json.dumps(cost) for cost in costs())
    (folder / "costs.json").write_text(f"[\n{lines}\n]\n")


def write_statements(path: Path, said: dict[str, dict[str, Any]]) -> None:
    """Write the first statement whole and of the others what differs from it."""
    first = next(iter(said.values()))
    rest = {
        name: {
            key: numbers.get(key) for key in first | numbers if numbers.get(key) != first.get(key)
        }
        for name, numbers in said.items()
    }
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in rest.items())
    path.write_text(f'{{"of the first": {json.dumps(first)},\n{lines}\n}}\n')


def read_statements(path: Path) -> dict[str, dict[str, Any]]:
    """Read what `write_statements` wrote."""
    said = json.loads(path.read_text())
    first = said.pop("of the first")
    return {name: first | numbers for name, numbers in said.items()}


def make_models(folder: Path) -> None:
    """Write model files, what they predict and what they say."""
    reports, said = {}, {}
    for name, case in MODELS.items():
        data = data_of(case)
        fit(case, data).save(folder / f"{name}.model")
        model = load(folder / f"{name}.model")
        reports[name] = model_report(model, data)
        said[name] = numbers_of(model.privacy_)
    write_reports(folder / "models.npz", reports)
    write_statements(folder / "models.json", said)


def make_ledger(folder: Path) -> None:
    """Write a ledger with charges that ended well, failed, and are open; and a checkpoint."""
    data, path = data_of(CHARGED), folder / "team.ledger"
    create_ledger(path, 3.0, 1e-5, dataset="visits")
    add_dataset(path, "patients", 1.0, 1e-6, neighbors="replace-one")
    common = {"n_iter": 20, "l1_radius": 10.0, "ledger": path}
    DPLassoClassifier(0.5, dataset="visits", purpose="readmission", **common).fit(data.X, data.y)
    DPLassoClassifier(0.25, 1e-7, dataset="patients", neighbors="replace-one", **common).fit(
        data.X, data.y
    )
    DPLogisticRegression(0.5, dataset="visits", ledger=path).fit(data.X, data.y)
    killed_fit(CHARGED, folder / "charged.checkpoint", 10, ledger=path)
    # A process that died: its charge stays open.
    reserve(path, "visits", read_budgets(path)[0].entries[0].charge)
    write_json(folder / "ledger.json", ledger_report(path))


def make_checkpoints(folder: Path) -> None:
    """Write the checkpoints of fits that were killed and of one that ended."""
    reports = {}
    for name, (case, writes) in INTERRUPTED.items():
        killed_fit(case, folder / f"{name}.checkpoint", writes)
        if name in REPEATED:
            reports[name] = model_report(fit(case, data_of(case)), data_of(case))
    data, path = data_of(COMPLETE), folder / "complete.checkpoint"
    model = fit_with_checkpoints(COMPLETE.estimator(**COMPLETE.options), data.X, data.y, path)
    reports["complete"] = model_report(model, data)
    write_reports(folder / "checkpoints.npz", reports)


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
