"""``fit --checkpoint`` and ``--resume``."""

import signal
import subprocess
import sys
import time

import pytest

from cli.conftest import done, refused, run_command, vertices_in, vertices_of
from dplasso.checkpoint import read_checkpoint

STEPS = 3_000
# Slow steps, so that there is something to interrupt.
SETTINGS = ["--epsilon", "1", "--delta", "0.01", "--n-iter", str(STEPS)]
SETTINGS += ["--method", "frank-wolfe", "--solver", "standard"]


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


def stop(arguments, path, with_signal):
    """Begin a fit, and send it a signal once a checkpoint holds steps.

    Returns what the checkpoint holds then, the exit code, and what the process said.
    """
    command = [sys.executable, "-c", PROGRAM, "fit", *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    limit = time.monotonic() + 100
    while not path.exists() or not vertices_in(path):
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.01)
    process.send_signal(with_signal)
    _, stderr = process.communicate(timeout=30)
    return vertices_in(path), process.returncode, stderr


def test_killed_and_resumed_without_a_seed_it_keeps_its_steps(train, tmp_path, kept):
    model = tmp_path / "model.npz"
    given = [train, *SETTINGS, "--checkpoint", kept, "--checkpoint-seconds", 0, "--model", model]
    taken, code, stderr = stop(given, kept, signal.SIGINT)
    assert code == 130
    assert stderr.splitlines()[-1] == "interrupted, no result was written"
    assert not model.exists()
    assert (
        f"{kept} holds the unfinished fit: resume it at no further cost with dplasso fit" in stderr
    )
    done("fit", *given, "--resume")
    assert vertices_of(model)[: len(taken)] == taken
    # The model is safe: there is nothing to resume any more.
    assert not kept.exists()


def quick(*options):
    return ["--epsilon", "1", "--method", "frank-wolfe", "--n-iter", "5", *options]


def test_without_a_model_file_the_fit_can_still_be_resumed(train, tmp_path, kept):
    done("fit", train, *quick("--checkpoint", kept))
    assert read_checkpoint(kept).is_complete
    model = tmp_path / "model.npz"
    other = run_command("fit", train, *quick("--checkpoint", kept, "--resume", "--l1-radius", "3"))
    refused(other, "--l1-radius 10.0, and this fit has 3.0")
    drawn = vertices_in(kept)
    done("fit", train, *quick("--checkpoint", kept, "--resume", "--model", model))
    assert vertices_of(model) == drawn
    assert not kept.exists()
