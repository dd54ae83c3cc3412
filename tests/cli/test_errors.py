"""Bad input: one clear sentence, an exit code that is not 0, nothing written."""

import errno
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cli.conftest import refused, said
from dplasso.cli.app import app
from dplasso.cli.options import in_options
from dplasso.cli.output import json_safe, naming, one_line
from dplasso.encoding.files import read_categories


def test_help_and_version():
    assert said("--version") == f"dplasso {version('dplasso')}"
    for command in ("fit", "predict", "evaluate", "budget", "demo"):
        told = said(command, "--help")
        assert f"$ dplasso {command}" in told
        assert "<bool>" not in told


@pytest.mark.parametrize("command", ["fit", "tune"])
def test_help_shows_what_is_needed_most_and_help_all_the_rest(command):
    short, whole = (said(command, asked) for asked in ("--help", "--help-all"))
    assert f"dplasso {command} --help-all" in short
    assert 3 * len(short) < len(whole)
    options = re.compile(r"│ (?:\* )?(--[a-z-]+)")
    assert {"--epsilon", "--method"} <= set(options.findall(short)) < set(options.findall(whole))


@pytest.mark.parametrize(
    ("typed", "offered"), [("le", "ledger"), ("ledger sp", "spend"), ("fit --eps", "--epsilon")]
)
def test_the_shell_completes_commands_and_options(typed, offered):
    asks = {"_DPLASSO_COMPLETE": "complete_bash", "COMP_WORDS": f"dplasso {typed}"}
    place = {"COMP_CWORD": str(len(typed.split()))}
    ended = CliRunner().invoke(app, prog_name="dplasso", env=asks | place)
    assert (ended.exit_code, ended.stdout.split()) == (0, [offered])


def test_help_loads_nothing_heavy():
    script = """if True:
        import sys
        sys.argv = ["dplasso", "--help"]
        import dplasso.cli
        try:
            dplasso.cli.main()
        except SystemExit as end:
            heavy = {"numba", "sklearn", "scipy", "matplotlib", "dp_accounting"} & set(sys.modules)
            sys.exit(f"{end.code} {heavy}" if end.code or heavy else 0)
    """
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "evaluate" in ended.stdout


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("l1_radius must be > 0, got nan", "--l1-radius must be > 0, got nan"),
        ("delta must be 1e-9 for n_iter=100, and", "--delta must be 1e-9 for --n-iter 100, and"),
        ("mechanism='paper' is not private", "--mechanism paper is not private"),
        ("name both with the parameter classes", "name both with --classes"),
        ("random_state was given", "--seed was given"),
        ("greater than 0 (float('inf') for none)", "greater than 0 (inf for none)"),
        ("/data/n_iter: no such file", "/data/n_iter: no such file"),
        ("n_iter.svm: no such file", "n_iter.svm: no such file"),
        ("the budget pays for epsilon 1", "the budget pays for epsilon 1"),
    ],
)
def test_messages_name_options_not_parameters(message, shown):
    assert in_options(message) == shown


def test_a_full_disk_is_told_with_its_path():
    with pytest.raises(OSError, match="No space left") as told, naming("m.npz"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert one_line(told.value) == "m.npz: No space left on device"
    with pytest.raises(OSError, match="disk is full") as told, naming("m.npz"):
        raise OSError(errno.ENOSPC, "Cannot write m.npz: the disk is full.")
    assert one_line(told.value) == "Cannot write m.npz: the disk is full."
    command = [sys.executable, "-m", "dplasso", "budget", "--epsilon", "1"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: standard output: No space left on device\n"


def test_too_many_columns_are_told_to_be_hashed(run, tmp_path, monkeypatch):
    def full(*_):
        raise MemoryError("Unable to allocate 4.00 TiB")

    path = tmp_path / "wide.svm"
    path.write_text("+1 1:1 1099511627776:1\n-1 2:1\n")
    # Where memory is promised freely, asking for it succeeds and using it ends the process.
    for method in ("lasso", "logistic"):
        told = run("fit", path, "--epsilon", "1", "--method", method)
        refused(told, "not enough memory", "GB are needed", "columns: hash them to fewer")
    monkeypatch.setattr("dplasso.estimators.fitting.check_columns_fit", lambda *_: None)
    monkeypatch.setattr("dplasso.estimators.fitting.run", full)
    told = run("fit", path, "--epsilon", "1")
    columns = "1,099,511,627,776 columns: hash them to fewer"
    refused(told, "not enough memory: Unable to allocate", columns)
    path.write_text("+1 1:1 9:1\n-1 2:1\n")
    assert "hash" not in run("fit", path, "--epsilon", "1").stderr


def test_a_byte_order_mark_is_no_part_of_a_json_file(tmp_path):
    path = tmp_path / "categories.json"
    path.write_bytes(b'\xef\xbb\xbf{"city": ["Rome"]}')
    assert read_categories(path) == {"city": ["Rome"]}


def test_json_safe_has_no_infinities():
    document = {"a": np.float64("inf"), "b": [float("-inf"), float("nan")], "c": np.int64(3)}
    assert json_safe(document) == {"a": "inf", "b": ["-inf", None], "c": 3}
