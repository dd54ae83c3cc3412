"""Kill fits with SIGKILL at random moments and at every step of a write, and resume them.

    python -m evidence assurance/crashes --kills 200

A trial begins a fit in a process of its own, with a checkpoint after every step. It kills the
process, looks at what is on the disk, and resumes, killing again and again; the last process is
left to finish. Processes die at random moments, within a write, between two phases of the fit, or
within the charge to a ledger. The fit has survived when

- after every kill the checkpoint was whole, began with the releases and the steps that the
  checkpoint before it held, and the model was absent or whole;
- seeded: the model file is byte for byte that of a fit that was never killed;
- unseeded: its releases begin with every checkpoint's, and its statement is the uninterrupted
  fit's;
- charged to a ledger: after every kill it held one entry at most, of the fit's token, and in
  the end one, finished, that names the releases of the model.
"""

import math
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dplasso import DPFrankWolfeClassifier, DPLassoClassifier, DPLogisticRegression
from dplasso.checkpoint import (
    Checkpoint,
    fit_with_checkpoints,
    read_checkpoint,
    resume_fit,
    session,
)
from dplasso.fit import run as fit_run
from dplasso.ledger import budgets, charging, create_ledger, find, read_budgets
from dplasso.ledger.database import transaction
from dplasso.phases.released import Released
from dplasso.phases.releases import Drawn
from dplasso.runtime import progress

# Where a process dies while it writes: the call, and whether before or after it is done.
MOMENTS = tuple(
    (name, when) for name in ("open", "write", "fsync", "replace") for when in ("before", "after")
)
# The same for what is done to a ledger, each but once in a process: the charge, the entry inside
# the charge's transaction, the end.
LEDGER_MOMENTS = tuple(
    (name, when) for name in ("reserve", "insert_entry", "finish") for when in ("before", "after")
)
# Between two phases: a share is checked as soon as the release of the phase before is kept.
PHASE = ("check_share", "before")
_HOLDERS: dict[str, Any] = {
    "fsync": os,
    "replace": Path,
    "reserve": session,
    "insert_entry": budgets,
    "finish": charging,
    "check_share": fit_run,
}
_STEPS = 80
_MOST_KILLS_A_TRIAL = 5
_ENOUGH_FAILURES = 20
_WALK = {"kind": DPFrankWolfeClassifier, "epsilon": 2.0, "n_iter": _STEPS}
# At this budget gradients keep columns, and their weights are refitted.
_LASSO = {"kind": DPLassoClassifier, "epsilon": 50.0, "max_weights": 20}
_SHORT = {"kind": DPLogisticRegression, "epsilon": 50.0, "max_weights": 5}
# The estimator, its settings, and what the fit starts from.
_SETTINGS: dict[str, dict[str, Any]] = {
    "seeded": {**_WALK, "random_state": 11},
    "system entropy": {**_WALK, "random_state": None},
    "seeded, big-little": {**_WALK, "random_state": 12, "selector": "big-little"},
    "seeded, standard": {**_WALK, "random_state": 13, "solver": "standard"},
    "charged to a ledger": {**_WALK, "random_state": None, "ledger": "ledger"},
    "charged to a ledger, LASSO": {**_LASSO, "random_state": None, "ledger": "ledger"},
    "charged to a ledger, short list": {**_SHORT, "random_state": None, "ledger": "ledger"},
    "seeded, LASSO": {**_LASSO, "random_state": 14},
    "system entropy, from a prior": {**_SHORT, "random_state": None, "prior": "own"},
}


@dataclass
class Outcome:
    """What a series of trials came to.

    `during_writes` counts the kills at a chosen point of a write or of a charge to a ledger, which
    `at_charges` counts alone, and `between_phases` those between two phases. `steps_kept` counts
    the steps of a phase under way, and `phases_kept` the phases, that checkpoints held after kills.
    """

    seed: int
    kills: int = 0
    during_writes: int = 0
    at_charges: int = 0
    between_phases: int = 0
    trials: int = 0
    survived: int = 0
    charged: int = 0
    steps_kept: int = 0
    phases_kept: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0


def example(seed: int) -> tuple[Any, Any]:
    """Make a small data set: 60 rows, 250 columns, labels 0 and 1."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((60, 250), density=0.05, format="csr", rng=rng, dtype=np.float32)
    return X, rng.integers(0, 2, 60)


def made(options: dict[str, Any], data: tuple[Any, Any], folder: Path) -> Any:
    """Return the estimator of a kind of fit, and its ledger in the folder."""
    options = dict(options)
    kind = options.pop("kind")
    if "ledger" in options:
        options["ledger"] = str(folder / options["ledger"])
        if not (folder / "ledger").exists():
            # Enough for this fit and not for another.
            create_ledger(folder / "ledger", 1.2 * options["epsilon"], 1e-6)
    if "prior" in options:
        X, y = data
        options["prior"] = DPLogisticRegression(math.inf).fit(X[:20], y[:20])
    return kind(**options)


def run_fit(options: dict[str, Any], data: tuple[Any, Any], folder: Path) -> None:
    """Begin the fit in a folder, or resume it where it was begun; save its model."""
    estimator = made(options, data, folder)
    path, model = folder / "checkpoint", folder / "model.npz"
    run: Callable[..., Any] = resume_fit if path.exists() else fit_with_checkpoints
    run(estimator, *data, path, seconds=0.0)
    estimator.save(model)


def die_at(moment: tuple[str, str], count: int) -> None:
    """Arrange that this process kills itself at the `count`-th occurrence of a moment."""
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
    else:
        setattr(_HOLDERS[name], name, wrapped(getattr(_HOLDERS[name], name)))


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
    prefixes: list[Checkpoint] = []
    n_phases = read_checkpoint(reference / "checkpoint").n_phases
    for kill in range(int(rng.integers(1, _MOST_KILLS_A_TRIAL + 1)) + 1):
        last = kill == _MOST_KILLS_A_TRIAL or (kill > 0 and rng.random() < 0.25)
        # Drawn here: in the child it would be drawn from a copy.
        moment, count = MOMENTS[rng.integers(len(MOMENTS))], int(rng.integers(1, _STEPS))
        wait, where = float(rng.uniform(0.0, 1.2 * whole_seconds)), rng.random()
        at_phase, at_charge = where < 0.2, "ledger" in options and 0.2 <= where < 0.5
        chosen = not last and where < (0.75 if "ledger" in options else 0.6)
        if at_phase:
            moment, count = PHASE, int(rng.integers(1, n_phases + 1))
        if at_charge:
            moment, count = LEDGER_MOMENTS[rng.integers(len(LEDGER_MOMENTS))], 1

        def work(
            moment: tuple[str, str] | None = moment if chosen else None, count: int = count
        ) -> None:
            if moment is not None:
                die_at(moment, count)
            run_fit(options, data, folder)

        end = in_child(work, None if last or chosen else wait)
        if end not in ("done", "killed"):
            outcome.failures.append(end)
            return
        if end == "killed":
            outcome.kills += 1
            outcome.between_phases += chosen and at_phase
            outcome.at_charges += chosen and at_charge
            outcome.during_writes += chosen and not at_phase
        if (folder / "checkpoint").exists():
            prefixes.append(read_checkpoint(folder / "checkpoint"))
            if end == "killed":
                outcome.phases_kept += prefixes[-1].place[0]
                outcome.steps_kept += prefixes[-1].place[1]
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
        prefixes.append(read_checkpoint(folder / "checkpoint"))
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
    if kept.token is None:
        yield "the checkpoint does not say that it is charged"
    elif any(kept.place) and find(folder / "ledger", kept.token) is None:
        yield "the checkpoint names an entry that the ledger does not have"


def _load(path: Path) -> Any:
    from dplasso import load

    return load(path)


def _taken_over(shorter: Checkpoint, longer: Checkpoint) -> bool:
    """Return whether a checkpoint begins with what an earlier one held."""
    done, later = len(shorter.released), longer.state
    begun = Released(longer.released.entries[:done]).arrays()
    ours = shorter.released.arrays()
    if begun.keys() != ours.keys() or any(
        not np.array_equal(begun[name], ours[name]) for name in ours
    ):
        return False
    if len(longer.released) > done:
        ended = longer.released.entries[done].release
        later = ended.arrays() if isinstance(ended, Drawn) else shorter.state
    elif longer.place < shorter.place:
        return False
    return all(
        np.array_equal(shorter.state[name], later[name][: len(shorter.state[name])])
        for name in ("vertex", "sign")
        if name in shorter.state
    )


def differences(
    options: dict[str, Any], folder: Path, reference: Path, prefixes: list[Checkpoint]
) -> Iterator[str]:
    """List what is wrong with a fit that was killed and finished."""
    model, whole = _load(folder / "model.npz"), _load(reference / "model.npz")
    final = replace(prefixes[-1], released=model.model_.released, state={})
    for shorter, longer in zip(prefixes, [*prefixes[1:], final], strict=True):
        if not _taken_over(shorter, longer):
            yield "{} phases and {} steps were not taken over".format(*shorter.place)
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
        token = read_checkpoint(folder / "checkpoint").token
        with transaction(folder / "ledger") as db:
            paid = db.execute("SELECT token, release FROM entry").fetchall()
        if paid != [(token, model.model_.digest)]:
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
    progress._CHUNK_SECONDS = 0.0  # a step a chunk: a checkpoint after each
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
    # Results of version 0.3 do not have it.
    between = found.get("between_phases")
    phases = f", {between} between two phases" if between else ""
    return [
        f"{found['kills']} processes killed, {found['during_writes']} at a step of a write or "
        f"charge{phases}{ledger}; {found['survived']} of {found['trials']} fits ended as they "
        "should",
        *found["failures"],
    ]
