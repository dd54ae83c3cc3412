"""A fit that was charged ends in a model, whatever happens to disk and process."""

import errno
import os
import shlex
import signal
from pathlib import Path
from pkgutil import resolve_name

import pytest

from cli.conftest import charged_to, done, new_ledger, refused, run_command
from dplasso import load
from dplasso.checkpoint import read_checkpoint
from small_fits import short_runs

METHODS = {
    "logistic": ("--method", "logistic"),
    "lasso": ("--method", "lasso"),
    "frank-wolfe": ("--method", "frank-wolfe", "--n-iter", 6),
}


@pytest.fixture(autouse=True)
def every_step_is_kept(monkeypatch):
    monkeypatch.setattr("dplasso.runtime.progress._CHUNK_SECONDS", 0.0)
    with short_runs():
        yield


@pytest.fixture
def ledger(tmp_path):
    """Give a ledger that has enough for one of these fits and not for another."""
    return new_ledger(tmp_path / "team.ledger", 1.2, 1e-5)


RESERVE = "dplasso.checkpoint.session.reserve"
WRITE = "dplasso.checkpoint.session.write_checkpoint"


def replaced(monkeypatch, place, function):
    """Put a function in another's place, given by its name; return the other."""
    home, _, name = place.rpartition(".")
    holder = resolve_name(home)
    original = getattr(holder, name)
    monkeypatch.setattr(holder, name, function)
    return original


def states(ledger):
    return [entry.state for entry in charged_to(ledger)]


def names(folder):
    """Name the files of a folder, but for the key of a ledger's fingerprints."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".key")


def paid(train, ledger, method="logistic"):
    """Return the command line of a fit that is charged."""
    model = ledger.with_name("m.npz")
    given = ("fit", train, "--epsilon", 1, *METHODS[method], "--ledger", ledger, "--model", model)
    return (*given, "--checkpoint-seconds", 0)


def told_command(stderr):
    """Return the arguments of the command that a message says, without the program's name."""
    line = next(line for line in stderr.splitlines() if "at no further cost with" in line)
    command = line.split("at no further cost with ")[1].split(" (--force")[0]
    name, *arguments = shlex.split(command)
    assert name == "dplasso"
    return arguments


def check_paid_once(ledger):
    """See that there is the model that was paid for, and nothing else."""
    assert states(ledger) == ["finished"]
    model = ledger.with_name("m.npz")
    (entry,) = charged_to(ledger)
    assert entry.release == load(model).model_.digest
    assert names(ledger.parent) == ["m.npz", "team.ledger"]


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_that_ends_leaves_its_model_alone(method, train, ledger):
    done(*paid(train, ledger, method))
    check_paid_once(ledger)


def test_overwriting_a_model_is_said_to_cost(train, ledger):
    model = ledger.with_name("m.npz")
    model.write_text("an older model")
    words = "overwrite it with --force, which is charged again"
    refused(run_command(*paid(train, ledger)), words)
    assert states(ledger) == []


# --- A full disk ---------------------------------------------------------------------------------


class Disk:
    """Counts what is written to the disk, and is full from some write on."""

    def __init__(self, monkeypatch):
        self.writes, self.full_at = 0, None
        original = Path.open

        def opened(path, mode="r", *rest, **options):
            file = original(path, mode, *rest, **options)
            if set(mode) & set("wx+"):
                file.write = self.counted(file.write)
            return file

        monkeypatch.setattr(Path, "open", opened)
        for name in ("fsync", "posix_fallocate"):
            monkeypatch.setattr(os, name, self.counted(getattr(os, name)))

    def counted(self, function):
        def call(*given):
            self.writes += 1
            if self.full_at is not None and self.writes >= self.full_at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return function(*given)

        return call


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


def test_a_full_disk_loses_nothing_that_is_paid_for(train, ledger, disk):
    done(*paid(train, ledger, "lasso"))
    count = disk.writes
    assert count > 30
    ended = set()
    # Among all writes (checkpoint before the charge, the count, steps), and at
    # most of those of the last step and the model.
    for place in sorted({1, *range(2, count, count // 8), *range(count - 60, count + 1, 10)}):
        for path in (ledger, ledger.with_name("m.npz")):
            path.unlink()
        new_ledger(ledger, 1.2, 1e-5)
        disk.writes, disk.full_at = 0, place
        result = run_command(*paid(train, ledger, "lasso"))
        disk.full_at = None
        if result.exit_code == 0:
            # The last to be done is to sync the folder, where that can be done.
            check_paid_once(ledger)
            continue
        assert "disk is full" in result.stderr
        assert "Traceback" not in result.stderr
        kept = ledger.with_name("m.npz.checkpoint")
        assert set(names(ledger.parent)) <= {kept.name, "team.ledger"}
        assert kept.exists() or not states(ledger)
        charged = "paid" if states(ledger) else "nothing spent"
        ended.add((charged, kept.exists() and read_checkpoint(kept).is_complete))
        command = told_command(result.stderr) if kept.exists() else paid(train, ledger, "lasso")
        done(*command)
        check_paid_once(ledger)
    assert {("nothing spent", False), ("paid", False), ("paid", True)} <= ended


# --- A process that is killed --------------------------------------------------------------------

# A function, at which of its calls a fit is killed, and whether that is after the call.
KILLS = {
    "before the checkpoint": (WRITE, 1, False),
    "before the charge": (RESERVE, 1, False),
    "after the charge": (RESERVE, 1, True),
    "before the count": ("dplasso.fit.run.check_share", 1, False),
    "after the count": ("dplasso.fit.run.check_share", 2, False),
    "when the count is kept": (WRITE, 2, True),
    "at a step": (WRITE, 4, True),
    "after the last step": ("dplasso.ledger.charging.finish", 1, False),
    "after the end is noted": ("dplasso.ledger.charging.finish", 1, True),
    "when the model is written": ("dplasso.cli.fit.write_model", 1, False),
    "while the model is written": ("dplasso.model.file.write_released", 1, False),
    "when the model is there": ("dplasso.cli.checkpoints.Keeping.finish", 1, False),
}


def killed_at(moment, arguments):
    """Run a command in a process that is killed at a call."""
    place, left, after = moment

    def call(*given, **options):
        nonlocal left
        left -= 1
        if left == 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*given, **options)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def work():
        nonlocal original
        original = replaced(pytest.MonkeyPatch(), place, call)
        run_command(*arguments)

    original = None

    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


@pytest.mark.parametrize("name", KILLS)
def test_a_killed_fit_is_paid_for_once_and_ends_in_a_model(name, train, ledger):
    arguments = paid(train, ledger, "lasso")
    killed_at(KILLS[name], arguments)
    assert len(states(ledger)) == int(name not in ("before the checkpoint", "before the charge"))
    kept = ledger.with_name("m.npz.checkpoint")
    result = run_command(*arguments)
    if name == "before the checkpoint":
        assert result.exit_code == 0, result.output
    else:
        # The same command again says how to go on, first, and what --force would cost.
        refused(result, f"{kept} holds an unfinished fit")
        assert result.stderr.index("--resume") < result.stderr.index("pays for another")
        assert len(states(ledger)) == int(name != "before the charge")
        before = read_checkpoint(kept).released
        done(*told_command(result.stderr))
        final = load(ledger.with_name("m.npz")).model_.released
        assert type(before)(final.entries[: len(before)]).digest == before.digest
    check_paid_once(ledger)


def test_without_a_model_file_the_fit_can_still_be_resumed(train, tmp_path):
    kept, model = tmp_path / "kept", tmp_path / "m.npz"
    given = ("fit", train, "--epsilon", 1, *METHODS["frank-wolfe"], "--checkpoint", kept)
    done(*given)
    before = read_checkpoint(kept)
    assert before.is_complete
    other = run_command(*given, "--resume", "--l1-radius", 3)
    refused(other, "--l1-radius 10.0, and this fit has 3.0")
    done(*given, "--resume", "--model", model)
    assert load(model).model_.released.digest == before.released.digest
    assert not kept.exists()


def test_where_nothing_is_left_force_gives_nothing_up(train, ledger):
    arguments = paid(train, ledger)
    killed_at(KILLS["at a step"], arguments)
    result = run_command(*arguments, "--force")
    assert "cannot pay" in result.stderr
    assert "discards it" not in result.stderr
    done(*arguments, "--force", "--resume")
    check_paid_once(ledger)


def test_a_fit_that_is_given_up_is_named(train, tmp_path):
    ample = tmp_path / "team.ledger"
    new_ledger(ample, 10.0, 1e-5)
    arguments = paid(train, ample)
    killed_at(KILLS["at a step"], arguments)
    told = done(*arguments, "--force").stderr
    assert "m.npz.checkpoint held an unfinished fit; --force discards it" in told
    assert states(ample) == ["reserved", "finished"]
    assert names(ample.parent) == ["m.npz", "team.ledger"]


def test_what_is_refused_before_the_charge_leaves_nothing(train, ledger, monkeypatch):
    """Another fit takes the last of the budget while the records are read."""

    def late(path, dataset, charge, **options):
        original(path, dataset, charge)
        return original(path, dataset, charge, **options)

    original = replaced(monkeypatch, RESERVE, late)
    refused(run_command(*paid(train, ledger)), "cannot pay")
    assert names(ledger.parent) == ["team.ledger"]


def test_a_charge_that_fails_leaves_nothing_to_resume(train, ledger, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("dplasso.ledger.database._write", full)
    result = run_command(*paid(train, ledger))
    refused(result, "team.ledger cannot be written: the disk is full")
    assert "--resume" not in result.stderr
    assert names(ledger.parent) == ["team.ledger"]
