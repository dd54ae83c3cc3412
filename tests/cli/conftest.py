"""Small files and a runner for the command line's tests."""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import typer
from typer import testing

from dplasso.cli import main
from dplasso.ledger import read_budgets

# A process makes all commands and their options once, which takes longer than many of them.
typer.main.get_command = cache(typer.main.get_command)
# The runner calls the program that it is given as it is.
testing._get_command = lambda program: program


class Program:
    """The program `dplasso`, as a shell starts it."""

    name = "dplasso"

    def main(self, args: list[str], **_: Any) -> None:
        """Run it with these arguments."""
        argv = [self.name, *args]
        with patch.object(sys, "argv", argv), patch.object(sys, "excepthook", sys.excepthook):
            main()


def run_command(*arguments: Any, keyboard: str | None = None, **environment: str) -> Any:
    """Run a command line in this process; the result has exit_code, stdout, stderr."""
    runner = testing.CliRunner(env=environment)
    return runner.invoke(Program(), [str(argument) for argument in arguments], input=keyboard)


def done(*arguments: Any, code: int = 0) -> Any:
    """Run a command line that has to end with this exit code."""
    result = run_command(*arguments)
    assert result.exit_code == code, result.output
    return result


def found(*arguments: Any) -> Any:
    """Run a command line that has to succeed, and return its one line of strict JSON."""
    result = done(*arguments, "--json")
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout, parse_constant=pytest.fail)


def said(*arguments: Any) -> str:
    """Run a command line that has to succeed, and return what it says, in one line."""
    return " ".join(done(*arguments).stdout.split())


def refused(result: Any, *words: str, code: int = 1) -> None:
    """Check for one sentence on standard error that holds the words, and nothing else."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    # On a fresh machine a remark about the compiler may stand before the error, on several lines.
    remark = r"compiling\s+what\s+this\s+needs,.*?--method\s+frank-wolfe\n"
    lines = re.sub(remark, "", result.stderr, flags=re.DOTALL).splitlines()
    # On a slow one progress is told, too.
    lines = [line for line in lines if not re.match(r"[\w. ]+: \d+%", line)]
    # What is to be said of the promise stands before it.
    lines = [line for line in lines if not line.startswith("caution (")]
    if code == 1:
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("error: ")
    told = " ".join(" ".join(lines).replace("│", " ").split())
    for word in words:
        assert word in told, told


@cache
def every_command(*group: str) -> tuple[tuple[str, ...], ...]:
    """List the words of every command, as help does."""
    _, listed, commands = done(*group, "--help").stdout.partition("─ Commands ─")
    if not listed:
        return (group,)
    names = re.findall(r"^│ (\w\S*)", commands, re.MULTILINE)
    return tuple(words for name in names for words in every_command(*group, name))


def vertices_in(path: Path) -> list[tuple[int, int]]:
    """Return the signed vertices in a checkpoint."""
    with np.load(path) as file:
        # Those under way, or those released.
        held = {name[-6:]: file[name].tolist() for name in file.files if "-vert" in name}
        held |= {name[-4:]: file[name].tolist() for name in file.files if name.endswith("-sign")}
    return list(zip(held.get("vertex", ()), held.get("sign", ()), strict=True))


def new_ledger(path: Path, epsilon: float, delta: float, dataset: str | None = None) -> Path:
    """Create a ledger, and return its path."""
    named = () if dataset is None else ("--dataset", dataset)
    done("ledger", "init", path, "--epsilon", epsilon, "--delta", delta, *named)
    return path


def charged_to(ledger: Path) -> list[Any]:
    """Return the entries of a ledger, of all its data sets."""
    return [entry for budget in read_budgets(ledger) for entry in budget.entries]


def write_svmlight(path: Path, n_rows: int, seed: int) -> Path:
    """Write rows over 30 columns; columns 1 and 2 (from 1) tell the labels -1 and +1."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n_rows):
        positive = rng.random() < 0.6
        columns = {1 if positive else 2} if rng.random() < 0.95 else {1, 2}
        columns |= set((3 + rng.choice(28, size=4, replace=False)).tolist())
        entries = " ".join(f"{column}:{rng.uniform(0.2, 3.0):.3f}" for column in sorted(columns))
        lines.append(f"{'+1' if positive else '-1'} {entries}\n")
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="session")
def train(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give 800 labelled rows."""
    return write_svmlight(tmp_path_factory.mktemp("data") / "train.svm", 800, seed=1)


@pytest.fixture(scope="session")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give 300 more."""
    return write_svmlight(tmp_path_factory.mktemp("data") / "test.svm", 300, seed=2)


@pytest.fixture(scope="session")
def model(train: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a model that separates the classes: fitted with a budget where noise is no matter."""
    path = tmp_path_factory.mktemp("model") / "model.npz"
    done("fit", train, "--epsilon", "50", "--binarize", "--model", path)
    return path


@pytest.fixture(scope="session")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give 900 hospital visits of 300 patients: age and ward decide whether somebody comes back."""
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    age, ward = rng.uniform(18, 95, 900), rng.choice(["heart", "eyes", "bones"], 900)
    table = pd.DataFrame({"age": age.astype(int), "ward": ward, "note": ""})
    often = (table["age"] > 60) & (table["ward"] == "heart")
    table["back"] = np.where(rng.random(900) < np.where(often, 0.9, 0.1), "yes", "no")
    table["patient"] = [f"p{number}" for number in rng.integers(0, 300, 900)]
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the schema of the visits."""
    path = tmp_path_factory.mktemp("schema") / "schema.json"
    parts = [
        {"kind": "bins", "column": "age", "edges": [*range(20, 101, 10)]},
        {"kind": "categories", "column": "ward", "categories": ["bones", "eyes", "heart"]},
        {"kind": "cross", "columns": ["age", "ward"]},
    ]
    path.write_text(json.dumps({"label": "back", "parts": parts}))
    return path


@pytest.fixture(scope="session")
def stores(train: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with the rows of `train` in three stores, made with the command line."""
    folder = tmp_path_factory.mktemp("cluster")
    lines = train.read_text().splitlines(keepends=True)
    for number, (first, last) in enumerate(((0, 100), (100, 350), (350, 800)), 9):
        rows, store = folder / f"part-{number}.svm", folder / "stores" / f"part-{number}.store"
        rows.write_text("".join(lines[first:last]))
        store.parent.mkdir(exist_ok=True)
        done("convert", rows, store, "--features", "30")
    return folder / "stores"
