"""Kill fits with SIGKILL at random moments and at every step of a write, and resume them.

    python -m evidence assurance/crashes --kills 200

A trial begins a fit with a checkpoint at every step in a process of its own, kills it, looks at
what is on the disk, and resumes, killing again and again; the last process is left to finish. It
has survived when

- after every kill the checkpoint was whole, held at least as many steps as before and repeated
  those it held before, and the model was absent or whole;
- seeded: the model file is byte for byte that of a fit that was never killed;
- unseeded: its transcript begins with every checkpoint's, and its statement is the uninterrupted
  fit's;
- charged to a ledger: after every kill it held one entry at most, of the fit's token, and in
  the end one, finished, that names the transcript of the model.
"""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dplasso import DPLassoClassifier
from dplasso.checkpoint import charge as checkpoint_charge
from dplasso.checkpoint import session as checkpoint
from dplasso.checkpoint.session import (
    fit_with_checkpoints,
    mark_finished,
    read_checkpoint,
    resume_fit,
)
from dplasso.errors import CheckpointError
from dplasso.fit.stages import StagedLasso
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.ledger import budgets, charging, create_ledger, read_budgets
from dplasso.ledger.database import transaction
from dplasso.model.release import digest_of
from dplasso.model.staged import StagedRelease
from dplasso.runtime import chunks

# Where a process dies while it writes: the call, and whether before or after it is done.
MOMENTS = tuple(
    (name, when) for name in ("open", "write", "fsync", "replace") for when in ("before", "after")
)
# The same for what is done to a ledger, each but once in a process: the charge, the entry inside
# the charge's transaction, its number in the checkpoint, the count that comes next, the end.
LEDGER_MOMENTS = tuple(
    (name, when)
    for name in ("reserve", "insert_entry", "take_charge", "begin", "finish")
    for when in ("before", "after")
)
_STEPS = 80
_MOST_KILLS_A_TRIAL = 5
_ENOUGH_FAILURES = 20
_SETTINGS: dict[str, dict[str, Any]] = {
    "seeded": {"random_state": 11},
    "system entropy": {"random_state": None},
    "seeded, big-little": {"random_state": 12, "selector": "big-little"},
    "seeded, standard": {"random_state": 13, "solver": "standard"},
    "charged to a ledger": {"random_state": None, "ledger": "ledger"},
    "charged to a ledger, staged": {
        "random_state": None,
        "ledger": "ledger",
        "n_iter": 20,
        "l1_radius": "auto",
        "refit": 0.5,
    },
    "seeded, staged": {"random_state": 14, "n_iter": 20, "l1_radius": "auto", "refit": 0.5},
}


@dataclass
class Outcome:
    """What a series of trials came to.

    `during_writes` and `at_charges` count the kills at a chosen point of a write or of a charge to
    a ledger, `steps_kept` the steps found in checkpoints after kills.
    """

    seed: int
    kills: int = 0
    during_writes: int = 0
    at_charges: int = 0
    trials: int = 0
    survived: int = 0
    charged: int = 0
    steps_kept: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0


def example(seed: int) -> tuple[Any, Any]:
    """Make a small data set: 60 rows, 50 columns, labels 0 and 1."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((60, 50), density=0.2, format="csr", rng=rng, dtype=np.float32)
    return X, rng.integers(0, 2, 60)


def run_fit(options: dict[str, Any], data: tuple[Any, Any], folder: Path) -> None:
    """Begin the fit in a folder, or resume it where it was begun; save its model."""
    if "ledger" in options:
        options = options | {"ledger": str(folder / options["ledger"])}
        if not (folder / "ledger").exists():
            # Enough for this fit and not for another.
            create_ledger(folder / "ledger", 2.0, 1e-6)
    estimator = DPLassoClassifier(2.0, **{"n_iter": _STEPS, "l1_radius": 10.0} | options)
    path, model = folder / "checkpoint", folder / "model.npz"
    run: Callable[..., Any] = resume_fit if path.exists() else fit_with_checkpoints
    try:
        run(estimator, *data, path, seconds=0.0)
    except CheckpointError:
        if not (path.exists() and read_checkpoint(path).finished):
            raise
        return  # killed after its last deed
    estimator.save(model)
    mark_finished(path)


def die_at(moment: tuple[str, str], count: int, *, staged: bool = False) -> None:
    """Arrange that this process kills itself at the `count`-th occurrence of a moment.

    `staged`: whether the fit counts and refits.
    """
    name, when = moment
    left = count

    def wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0 and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*arguments, **options)
            if left == 0 and name == "open":
                # Half a file: what the buffer held may or may not have reached the disk.
                result.write(b"PK half")
                result.flush()
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    if name == "open":
        original = Path.open
        counted = wrapped(original)
        Path.open = lambda self, mode="r", *rest, **options: (  # type: ignore[assignment, method-assign]
            counted if set(mode) & set("wx+") else original
        )(self, mode, *rest, **options)
    elif name == "write":
        import zipfile

        zipfile.ZipFile.writestr = wrapped(zipfile.ZipFile.writestr)  # type: ignore[method-assign]
    elif name == "fsync":
        os.fsync = wrapped(os.fsync)
    elif (name, when) in LEDGER_MOMENTS:
        module = {"insert_entry": budgets, "finish": charging, "take_charge": checkpoint}
        module |= {"begin": StagedLasso if staged else FrankWolfe}
        holder = module.get(name, checkpoint_charge)
        setattr(holder, name, wrapped(getattr(holder, name)))
    else:
        Path.replace = wrapped(Path.replace)  # type: ignore[method-assign]


def in_child(work: Callable[[], None], kill_after: float | None) -> str:
    """Run `work` in a fork of this process; return "done", "killed" or what went wrong."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode()[:2000])
            os._exit(1)
    os.close(writer)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        message = pipe.read().decode(errors="replace")
    if os.WIFSIGNALED(status):
        caught = signal.Signals(os.WTERMSIG(status)).name
        return "killed" if caught == "SIGKILL" else f"died of {caught}"
    return "done" if os.WEXITSTATUS(status) == 0 else message


def trial(
    options: dict[str, Any],
    data: tuple[Any, Any],
    rng: np.random.Generator,
    whole_seconds: float,
    outcome: Outcome,
    folder: Path,
    reference: Path,
) -> None:
    """Begin one fit, kill it a few times, let it finish and look at what it left."""
    prefixes = []
    for kill in range(int(rng.integers(1, _MOST_KILLS_A_TRIAL + 1)) + 1):
        last = kill == _MOST_KILLS_A_TRIAL or (kill > 0 and rng.random() < 0.25)
        at_write = not last and rng.random() < (0.6 if "ledger" in options else 0.3)
        # Drawn here: in the child it would be drawn from a copy.
        moment = MOMENTS[rng.integers(len(MOMENTS))]
        count = int(rng.integers(1, _STEPS))
        at_charge = "ledger" in options and at_write and rng.random() < 0.7
        if at_charge:
            moment, count = LEDGER_MOMENTS[rng.integers(len(LEDGER_MOMENTS))], 1
        wait = float(rng.uniform(0.0, 1.2 * whole_seconds))

        def work(
            moment: tuple[str, str] | None = moment if at_write else None, count: int = count
        ) -> None:
            if moment is not None:
                die_at(moment, count, staged="refit" in options)
            run_fit(options, data, folder)

        end = in_child(work, None if last or at_write else wait)
        if end not in ("done", "killed"):
            outcome.failures.append(end)
            return
        if end == "killed":
            outcome.kills += 1
            outcome.during_writes += at_write
            outcome.at_charges += at_charge
        if (folder / "checkpoint").exists():
            prefixes.append(read_checkpoint(folder / "checkpoint").release)
            outcome.steps_kept += len(prefixes[-1]) if end == "killed" else 0
        if (folder / "model.npz").exists():
            _load(folder / "model.npz")
        if "ledger" in options:
            outcome.failures.extend(miscounted(folder))
        if end == "done":
            break
    else:
        end = in_child(lambda: run_fit(options, data, folder), None)
        if end != "done":
            outcome.failures.append(end)
            return
        prefixes.append(read_checkpoint(folder / "checkpoint").release)
    outcome.charged += "ledger" in options
    outcome.failures.extend(differences(options, folder, reference, prefixes))


def miscounted(folder: Path) -> Iterator[str]:
    """List what is wrong with the ledger of a fit that was killed, or has ended."""
    if not (folder / "ledger").exists():
        return
    entries = [entry for budget in read_budgets(folder / "ledger") for entry in budget.entries]
    if len(entries) > 1:
        yield f"the ledger was charged {len(entries)} times for one fit"
    if not (folder / "checkpoint").exists():
        return
    kept = read_checkpoint(folder / "checkpoint")
    if kept.charge is None:
        yield "the checkpoint does not say that it is charged"
    elif kept.charge.number != (entries[0].number if entries else None) and (
        kept.charge.number is not None or len(kept.release)
    ):
        yield "the checkpoint names an entry that the ledger does not have"
    if kept.finished and [entry.state for entry in entries] != ["finished"]:
        yield "a finished fit whose entry is not"


def _load(path: Path) -> Any:
    from dplasso import load

    return load(path)


def _taken_over(shorter: Any, longer: Any) -> bool:
    """Return whether a release begins with what an earlier one held."""
    if isinstance(shorter, StagedRelease):
        if shorter.counts.any() and not np.array_equal(shorter.counts, longer.counts):
            return False
        shorter, longer = shorter.vertices, longer.vertices
    one, other = shorter.transcript, longer.transcript
    return np.array_equal(one.vertex, other.vertex[: len(one)]) and np.array_equal(
        one.sign, other.sign[: len(one)]
    )


def differences(
    options: dict[str, Any], folder: Path, reference: Path, prefixes: list[Any]
) -> Iterator[str]:
    """List what is wrong with a fit that was killed and finished."""
    model, whole = _load(folder / "model.npz"), _load(reference / "model.npz")
    final = model.model_.release
    for shorter, longer in zip(prefixes, [*prefixes[1:], final], strict=True):
        if len(longer) < len(shorter) or not _taken_over(shorter, longer):
            yield f"{len(shorter)} steps were not taken over"
    if model.privacy_ != whole.privacy_:
        yield "the privacy statement changed"
    same = (folder / "model.npz").read_bytes() == (reference / "model.npz").read_bytes()
    if same != (options["random_state"] is not None):
        yield "the model is another one" if not same else "fresh draws repeated a model"
    left = {path.name for path in folder.iterdir()} - {"checkpoint", "model.npz"}
    if "ledger" in options:
        left -= {"ledger", "ledger.key"}
        budgets = read_budgets(folder / "ledger")
        if [[entry.state for entry in budget.entries] for budget in budgets] != [["finished"]]:
            yield "the ledger does not hold one finished entry"
        charge = read_checkpoint(folder / "checkpoint").charge
        with transaction(folder / "ledger") as db:
            paid = db.execute("SELECT token, release FROM entry").fetchall()
        if charge is None or paid != [(charge.token, digest_of(model.model_.release))]:
            yield "the entry has not paid for this model"
    # A save that was killed leaves its temporary file; checkpoints reuse one name, now gone.
    if any(not name.startswith(".dplasso-") for name in left):
        yield f"left behind: {', '.join(sorted(left))}"


def crash(kills: int, seed: int, fit: str | None = None) -> Outcome:
    """Run trials until so many processes were killed, of all kinds of fits or those named `fit`."""
    began = time.perf_counter()
    outcome = Outcome(seed)
    rng = np.random.default_rng(seed)
    data = example(seed)
    chunks._CHUNK_SECONDS = 0.0  # a step a chunk: a checkpoint after each
    # A kill loses nothing that was written, synced or not: memory is as good as a disk, and fast.
    shared = Path("/dev/shm")
    home = Path(tempfile.mkdtemp(dir=shared if os.access(shared, os.W_OK) else None))
    try:
        seconds = {}
        names = [name for name in _SETTINGS if name.startswith(fit or "")]
        for name in names:
            options = _SETTINGS[name]
            for attempt in ("compiled", name):
                (home / attempt).mkdir()
                start = time.perf_counter()
                run_fit(options, data, home / attempt)
                seconds[name] = time.perf_counter() - start
            shutil.rmtree(home / "compiled")
        while outcome.kills < kills and len(outcome.failures) < _ENOUGH_FAILURES:
            name = names[outcome.trials % len(names)]
            folder = home / "trial"
            folder.mkdir()
            before = len(outcome.failures)
            try:
                trial(_SETTINGS[name], data, rng, seconds[name], outcome, folder, home / name)
            except Exception as error:
                outcome.failures.append(f"{type(error).__name__}: {error}")
            shutil.rmtree(folder)
            outcome.trials += 1
            outcome.survived += len(outcome.failures) == before
    finally:
        shutil.rmtree(home)
    outcome.seconds = round(time.perf_counter() - began, 1)
    return outcome


TITLE = "fits that are killed"
QUICK = {"kills": 5}
WEIGHTS = {"crashes": 3.0, "ledger-crashes": 3.0}
LEDGER = "charged to a ledger"


def measure(*, kills: int = 200, seed: int = 0, fit: str | None = None) -> dict[str, Any]:
    """Kill that many processes."""
    outcome = crash(kills, seed, fit)
    return {"passed": not outcome.failures, **asdict(outcome)}


def section(results: list[dict[str, Any]]) -> list[str]:
    """Return the counts, in words."""
    (found,) = results
    ledger = (
        f", {found['at_charges']} at a charge; {found['charged']} fits charged, each once"
        if found["at_charges"]
        else ""
    )
    return [
        f"{found['kills']} processes killed, {found['during_writes']} at a step of a write or "
        f"charge{ledger}; {found['survived']} of {found['trials']} fits ended as they should",
        *found["failures"],
    ]
