"""``fit --checkpoint`` and ``--resume``."""

import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from cli.conftest import done, found, refused
from dplasso import load
from dplasso.checkpoint.session import read_checkpoint
from dplasso.cli import output
from dplasso.cli.app import app

STEPS = 6_000
# Slow steps, so that there is something to interrupt.
SETTINGS = ["--epsilon", "1", "--delta", "0.01", "--n-iter", str(STEPS)]
SETTINGS += ["--method", "lasso", "--solver", "standard"]
SETTINGS += ["--l1-radius", "10"]


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "kept"


# A child ignores Ctrl-C where its parent does, as under nohup, unless it says otherwise.
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from dplasso.cli import main
main()
"""


def start(*arguments):
    command = [sys.executable, "-c", PROGRAM, "fit", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def stop(process, path, steps, with_signal=signal.SIGKILL):
    """Send a signal once a checkpoint holds more than `steps` steps.

    Returns what it holds then, and what the process said.
    """
    limit = time.monotonic() + 100
    while not path.exists() or len(read_checkpoint(path).transcript) <= steps:
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.01)
    process.send_signal(with_signal)
    _, stderr = process.communicate(timeout=30)
    return read_checkpoint(path).transcript, stderr


def test_killed_and_resumed_with_a_seed_it_is_the_same_model(train, tmp_path, kept):
    model, whole = tmp_path / "model.npz", tmp_path / "whole.npz"
    arguments = [train, *SETTINGS, "--seed", 5]
    options = ["--checkpoint", kept, "--checkpoint-seconds", 0, "--model", model]
    taken, _ = stop(start(*arguments, *options), kept, 0)
    steps = len(taken)
    assert 0 < steps < STEPS
    assert not model.exists()
    report = found("fit", *arguments, *options, "--resume")
    assert report["checkpoint"] == {"path": str(kept), "resumed_after": steps}
    done("fit", *arguments, "--model", whole)
    assert model.read_bytes() == whole.read_bytes()


def test_killed_and_resumed_without_a_seed_it_keeps_its_steps(train, tmp_path, kept, run):
    model, statement = tmp_path / "model.npz", tmp_path / "s.json"
    options = ["--checkpoint", kept, "--checkpoint-seconds", 0, "--model", model]
    process = start(train, *SETTINGS, *options, "--statement", statement)
    taken, stderr = stop(process, kept, 0, signal.SIGINT)
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == "interrupted, no result was written"
    assert not model.exists() | statement.exists()
    assert f"{kept} keeps what was done: go on, spending nothing twice, with dplasso fit" in stderr
    done("fit", train, *SETTINGS, *options, "--resume")
    final = load(model).transcript_
    assert final.vertex[: len(taken)].tolist() == taken.vertex.tolist()
    assert final.sign[: len(taken)].tolist() == taken.sign.tolist()
    # The model is safe: there is nothing to resume any more.
    refused(run("fit", train, *SETTINGS, *options, "--resume", "--force"), "finished fit")


def quick(*options):
    return ["--epsilon", "1", "--method", "lasso", "--n-iter", "5", "--l1-radius", "10", *options]


def test_without_a_model_file_the_fit_can_still_be_resumed(train, tmp_path, kept, run):
    done("fit", train, *quick("--checkpoint", kept))
    assert not read_checkpoint(kept).finished
    model = tmp_path / "model.npz"
    other = run("fit", train, *quick("--checkpoint", kept, "--resume", "--l1-radius", "3"))
    refused(other, "--l1-radius 10.0, not 3.0")
    done("fit", train, *quick("--checkpoint", kept, "--resume", "--model", model))
    assert load(model).transcript_ == read_checkpoint(kept).transcript
    assert read_checkpoint(kept).finished


def test_an_unfinished_fit_is_found_and_offered_before_it_is_given_up(
    train, tmp_path, kept, monkeypatch
):
    model = tmp_path / "model.npz"
    monkeypatch.setattr(output, "can_ask", lambda: True)
    noisy = quick("--epsilon", "0.1", "--n-iter", "30", "--checkpoint", kept)
    given = ["fit", train, *noisy, "--model", model]
    for answer, more, code, told in (
        ("n", [], 1, "go on, spending nothing twice, with"),
        ("n", ["--force"], 0, "--force gives it up"),
        ("y", ["--force"], 0, ""),
        ("\n", [], 0, ""),
    ):
        kept.unlink(missing_ok=True)
        done("fit", train, *noisy)
        before = read_checkpoint(kept).transcript
        model.unlink(missing_ok=True)
        ended = CliRunner().invoke(app, [str(one) for one in (*given, *more)], input=answer)
        assert ended.exit_code == code, ended.output
        assert "keeps a fit that has not ended. Go on with it" in ended.stderr
        assert told in " ".join(ended.stderr.split())
        if not code:
            assert (load(model).transcript_ == before) == (answer != "n")
    # Nobody is asked whose answer could not be read.
    monkeypatch.setattr(output, "can_ask", lambda: False)
    kept.unlink()
    done("fit", train, *noisy)
    ended = CliRunner().invoke(app, [str(one) for one in given])
    assert "Go on with it" not in ended.stderr


def test_without_a_terminal_long_work_says_every_tenth_and_the_time_left(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: clock[0])
    tenths, lines = output.Tenths(), []
    # The compiler takes a minute before the first step is done.
    clock[0] += 60.0
    for step in range(1, 101):
        clock[0] += 1.0
        lines.append(tenths.line(step / 100))
    said = [line for line in lines if line]
    assert said[0] == "10%, about 90 s left"
    assert said[1] == "20%, about 80 s left"
    assert (len(said), said[-1]) == (10, "100%")
    # Of short work nothing is said.
    tenths = output.Tenths()
    assert not any(tenths.line(step / 10) for step in range(11))
    # Nor of what its compiler alone made long.
    tenths = output.Tenths()
    clock[0] += 60.0
    for step in range(1, 11):
        clock[0] += 0.1
        assert tenths.line(step / 10) in ((None,) if step > 1 else (None, "10%"))
    words = ["0.55 s", "80 s", "1.7 minutes", "1.7 hours", "2.3 days"]
    assert [output.duration(one) for one in (0.548, 80, 100, 6000, 200_000)] == words
