"""Help, cautions and failures: what is said, in which words, with which exit code."""

import os
import subprocess
import sys
from functools import reduce
from importlib.metadata import version
from inspect import getdoc, signature
from pathlib import Path

import pytest
from typer.main import get_command

from cli.conftest import done, every_command, found, new_ledger, refused, run_command, said
from dplasso.cli import output
from dplasso.cli.app import app
from dplasso.cli.options import Chosen, StandIn, names_of
from dplasso.errors import DataError, LedgerError, ParameterError


def test_help_and_version():
    """Help shows what is needed most, and --help-all the rest."""
    assert said("--version") == f"dplasso {version('dplasso')}"
    for command in ("fit", "predict", "evaluate", "budget", "demo"):
        told = said(command, "--help")
        assert f"$ dplasso {command}" in told
        assert "<bool>" not in told
    short, whole = (said("fit", asked) for asked in ("--help", "--help-all"))
    assert "dplasso fit --help-all" in short
    assert 2 * len(short) < len(whole)
    for option in ("--epsilon", "--method", "--model"):
        assert option in short
    for option in ("--max-weights", "--l1-radius", "--purpose", "--prior"):
        assert option in whole


@pytest.mark.parametrize(
    ("typed", "offered"), [("le", "ledger"), ("ledger sp", "spend"), ("fit --eps", "--epsilon")]
)
def test_the_shell_completes_commands_and_options(typed, offered):
    asks = {"_DPLASSO_COMPLETE": "complete_bash", "COMP_WORDS": f"dplasso {typed}"}
    place = {"COMP_CWORD": str(len(typed.split()))}
    ended = run_command(**asks, **place)
    assert (ended.exit_code, ended.stdout.split()) == (0, [offered])


@pytest.mark.parametrize("kind", [DataError, LedgerError, ParameterError])
def test_an_error_names_parameters_as_its_reader_knows_them(kind):
    error = kind("`n_iter=3` is too much for `max_weights`", where="a.csv", advice="leave it out")
    assert str(error) == "a.csv: n_iter=3 is too much for max_weights; leave it out"
    assert (error.parameter, error.where, error.advice) == ("n_iter", "a.csv", "leave it out")
    shown = error.sentence(
        lambda name, value: f"<{name}>" if value is None else f"<{name} {value}>"
    )
    assert shown == "a.csv: <n_iter 3> is too much for <max_weights>; leave it out"
    assert kind("no parameter").parameter is None


def test_a_full_disk_is_told_with_its_path(model):
    for words in (["show", model], ["plan", "--help"]):
        command = [sys.executable, "-m", "dplasso", *words]
        with Path("/dev/full").open("w") as full:
            ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert ended.returncode == 1
        assert ended.stderr == "error: standard output: No space left on device\n"


def test_a_terminal_may_lack_letters(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("word,y\n文,0\nb,1\nb,0\nb,1\n")
    schema = tmp_path / "s.json"
    schema.write_text(
        '{"label": "y", "parts": [{"kind": "categories", "column": "word", '
        '"categories": ["文", "b"]}]}'
    )
    for words, code, told in (
        (["fit", path, "--schema", schema, "--epsilon", "9"], 0, r"word=\u6587"),
        (["schema", "draft", path], 1, "error: standard output: ascii lacks a letter"),
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "dplasso", *words],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
        )
        assert ended.returncode == code
        assert told in ended.stdout + ended.stderr


@pytest.mark.parametrize("method", ["lasso", "logistic"])
def test_too_many_columns_are_told_to_be_hashed(tmp_path, method):
    path = tmp_path / "wide.svm"
    path.write_text("+1 1:1 1099511627776:1\n-1 2:1\n")
    # Where memory is promised freely, asking for it succeeds and using it ends the process.
    told = run_command("fit", path, "--epsilon", "1", "--method", method)
    columns = "1,099,511,627,776 columns: hash them to fewer"
    refused(told, "not enough memory", "GB of memory", columns)


def test_a_byte_order_mark_is_no_part_of_a_json_file(tmp_path):
    schema = b'{"label": "label", "parts": [{"kind": "hashed", "columns": ["city"], "bits": 1}]}'
    (tmp_path / "schema.json").write_bytes(b"\xef\xbb\xbf" + schema)
    (tmp_path / "t.jsonl").write_text('{"city": "Rome", "label": 1}\n')
    options = ("--schema", tmp_path / "schema.json")
    assert found("convert", tmp_path / "t.jsonl", tmp_path / "s", *options)["n_features"] == 3


# --- what a promise lacks ------------------------------------------------------------------------


def said_by(*arguments):
    """Return what a command says beside its result, in one line."""
    return " ".join(done(*arguments).stderr.split())


def test_fit_says_all_cautions_and_says_them_once(train):
    fit = "fit", train, "--features", "30"
    told = said_by(*fit, "--epsilon", "1e9", "--delta", "0.01")
    for words in ("caution (red): an epsilon of", "caution (red): a delta of", "caution (amber):"):
        assert told.count(words) == 1
    assert "warning" not in told
    options = (*fit, "--epsilon", "1", "--classes=-1,1")
    assert "caution" not in said_by(*options)
    assert "caution (red): not diff" in said_by(*options, "--seed", "1")
    # Delta is held against the rows that were read.
    assert "caution (amber): a delta of 0.0002 is large" in said_by(*options, "--delta", "2e-4")


def test_a_fit_that_is_refused_has_been_told(train, tmp_path, monkeypatch):
    ledger = new_ledger(tmp_path / "l", 9, 1e-5)

    def refuse(*_, **__):
        raise OSError("spent")

    monkeypatch.setattr("dplasso.checkpoint.session.reserve", refuse)
    options = ("--ledger", ledger, "--model", tmp_path / "m.npz", "--epsilon", "4")
    result = run_command("fit", train, *options, "--classes=-1,1")
    assert result.exit_code == 1
    told = " ".join(result.stderr.split())
    assert "error: spent" in told
    assert told.index("caution (amber): an epsilon of 4") < told.index("error: spent")


def test_without_a_terminal_long_work_says_how_far_it_has_come(monkeypatch, capsys):
    clock = [100.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: clock[0])
    with output.progress_bars() as bars:
        for seconds in (1.0, 0.125):
            with bars.task("training") as update:
                for step in range(1, 101):
                    clock[0] += seconds
                    update(step, 100)
    # A line for each tenth, but only one in five seconds.
    assert capsys.readouterr().err.split("\n")[:-1] == [
        *(f"training: {tenth}%" for tenth in range(10, 110, 10)),
        *("training: 40%", "training: 80%"),
    ]


# --- what is read off the sources, to answer `--help` at once ------------------------------------

GROUP = get_command(app)
COMMANDS = {
    " ".join(words): reduce(lambda group, word: group.commands[word], words, GROUP).home
    for words in every_command()
}
ESTIMATORS = {
    f"{method} {number}": estimator
    for method, kinds in names_of("dplasso.estimators.cost")["METHODS"].items()
    for number, estimator in enumerate(kinds)
    if estimator is not None
}


def check_alike(read, imported):
    """Compare docstring and parameters, also those of the dataclasses among them."""
    assert read.__doc__ == getdoc(imported)
    found, real = signature(read).parameters, signature(imported).parameters
    assert list(found) == list(real)
    for one, other in zip(found.values(), real.values(), strict=True):
        assert str(one.annotation) == str(other.annotation)
        if isinstance(one.annotation, StandIn):
            check_alike(one.annotation, other.annotation)
        elif one.annotation != Chosen:
            assert one.default == other.default


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_read_as_it_is(name):
    read = COMMANDS[name]
    imported = read.load()
    check_alike(read, imported)
    prints = signature(imported).return_annotation is not None
    assert (signature(read).return_annotation is not None) == prints


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_is_read_as_it_is(name):
    check_alike(ESTIMATORS[name], ESTIMATORS[name].load())
