"""Gray-box replay: one fit, then the same steps replayed on a neighbouring data set.

The released vertices are held fixed, so whatever still differs between the two fits is a function
of the data that the mechanism did not protect. `record` sees a fit from outside and from inside;
`differences` compares two records of it; `inputs` gives what the mechanism is shown at every step;
`violations` compares those in integers.

The method is that of Re:cord-play (arXiv 2602.17454).
"""

import io
import os
import pickle
import sys
import tempfile
import warnings
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from evidence.audit.replay import replay_state
from evidence.solving import solve
from sklearn.base import clone

from dplasso.data.store import Store
from dplasso.estimators.fitting import fit_estimator
from dplasso.fit.run import Hooks
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.matrix.orientations import Design
from dplasso.phases.select import Vertices
from dplasso.privacy import release as door_module
from dplasso.privacy.randomness import RandomStream, random_stream
from dplasso.privacy.release import Door
from dplasso.runtime.threads import Threads
from neighbours import N_COLUMNS, in_form

PUBLIC_ROWS = np.random.default_rng(7).normal(size=(5, N_COLUMNS))
# One record's largest share of a gradient, in fixed-point units.
SHARE = 2**32
DECLARED = {"add-remove": SHARE, "replace-one": 2 * SHARE}

# What a fit calls, by the module on its path where it finds it. Recorded are the public arguments
# of these calls, and of the mechanism what comes back.
PLACES = {
    name: import_module(f"dplasso.{module}")
    for module, names in {
        "fit.records": ("design_of",),
        "fit.frank_wolfe": ("build_problem", "vertex_mechanism", "paper_mechanism", "FrankWolfe"),
        "fit.method": ("make_statement",),
        "fit.run": ("run_in_chunks",),
        "phases.select": ("make_selector",),
    }.items()
    for name in names
}


@dataclass(frozen=True)
class Replay(Door):
    """Gives a solver vertices to take, if there are any, in place of what draws them."""

    taken: Transcript | None

    def drawing_from(self, selector: Any, sensitivity: float) -> Any:
        """Return the structure that gives the vertices in turn."""
        taken = self.taken
        return selector if taken is None else replay_state(taken.vertex, taken.sign)


def replaying(taken: Transcript | None) -> Any:
    """Have every fit inside the block take these vertices."""
    return patch.object(door_module, "_door", Replay(taken))


def describe(value):
    """Return the public side of a value passed inside a fit: kinds and numbers, no entries."""
    if isinstance(value, Problem):
        return "problem", describe(value.design), value.loss, tuple(value[3:])
    if isinstance(value, Design):
        data = [part for side in (value.rows, value.columns) for part in side[:3]]
        public = value.n_columns, value.intercept, value.bound
        return "design", public, tuple(str(part.dtype) for part in data)
    if isinstance(value, RandomStream):
        return "stream"
    if isinstance(value, Threads):
        return "threads", value.count
    if isinstance(value, FrankWolfe | Vertices):
        return "steps", value.n_steps
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape
    if hasattr(value, "indptr"):
        return type(value).__name__, str(value.dtype), str(value.indices.dtype), value.shape[1]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value).__name__, tuple(describe(part) for part in value)
    return "function" if callable(value) else (type(value).__name__, repr(value))


def _describe_call(name, arguments, options):
    X, *others = arguments
    if name == "design_of" and isinstance(X, np.ndarray):
        # The number of rows is private.
        arguments = (("dense", str(X.dtype), X.shape[1]), *others)
    if name == "build_problem":
        arguments = (arguments[0], str(arguments[1].labels.dtype))
    if name == "design_of" and isinstance(X, Store):
        kinds = tuple(str(part.dtype) for part in X.rows[:2])
        arguments = (("store", X.shape[1], kinds), *others)
    named = {key: describe(options[key]) for key in sorted(options)}
    return name, tuple(describe(value) for value in arguments), named


def record(model, data, taken=None):
    """Fit a copy of `model` to (X, y), replaying `taken` if given, and write down all of it.

    That is what anybody, or only the code, could see: `calls`, the public side of the calls inside
    (parameters, dtypes, threads, sizes, in order); `texts`, its representation, its statement and
    all it printed; `totals` told to the progress bar; `entropy`, bytes asked of the system call by
    call; `predicted` for public rows; `numpy_state`, whether numpy's global generator stayed as it
    was; `error`, what stopped the fit or the saving of its model.
    """
    calls, entropy, totals, printed = [], [], set(), io.StringIO()
    system_entropy = os.urandom

    def counted(size):
        # Not the compiler's names for its temporary files.
        if sys._getframe(1).f_globals.get("__name__", "").startswith("dplasso"):
            entropy.append(size)
        return system_entropy(size)

    def watched(name):
        function = getattr(PLACES[name], name)

        def call(*arguments, **options):
            told = _describe_call(name, arguments, options)
            result = function(*arguments, **options)
            calls.append((name, repr(result)) if name.endswith("mechanism") else told)
            return result

        return call

    fitted, before = clone(model), _numpy_state()
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(printed))
        stack.enter_context(redirect_stderr(printed))
        warned = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        for name, module in PLACES.items():
            stack.enter_context(patch.object(module, name, watched(name)))
        stack.enter_context(patch.object(os, "urandom", counted))
        try:
            stack.enter_context(replaying(taken))
            fit_estimator(fitted, *data, Hooks(progress=lambda _, total: totals.add(total)))
            texts = repr(fitted), str(fitted.privacy_), fitted.privacy_.to_json()
            predicted = fitted.predict_proba(PUBLIC_ROWS).tobytes()
            path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "model.npz"
            fitted.save(path)
            saved, error = path.read_bytes(), ""
        except Exception as stopped:
            texts, predicted, saved = (), b"", b""
            error = f"{type(stopped).__name__}: {stopped}"
    return SimpleNamespace(
        calls=calls,
        attributes={name: pickle.dumps(value) for name, value in vars(fitted).items()},
        pickled=pickle.dumps(fitted),
        saved=saved,
        texts=(*texts, printed.getvalue()),
        warned=[(item.category.__name__, str(item.message)) for item in warned],
        totals=totals,
        entropy=entropy,
        predicted=predicted,
        numpy_state=_numpy_state() == before,
        error=error,
    )


def _numpy_state():
    return np.random.get_state()[1].tobytes()  # noqa: NPY002


def differences(one, other):
    """Name what differs between two recordings of fits that replayed the same transcript."""
    found = []
    for name, left in vars(one).items():
        right = getattr(other, name)
        if left == right:
            continue
        if name == "attributes":
            unlike = sorted(k for k in {*left, *right} if left.get(k) != right.get(k))
            found += [f"attribute {k}" for k in unlike]
        elif name == "calls":
            unlike = [pair for pair in zip(left, right, strict=False) if pair[0] != pair[1]]
            found.append(f"calls: {unlike or (len(left), len(right))}")
        else:
            found.append(name if isinstance(left, bytes) else f"{name}: {left} and {right}")
    return found


def inputs(model, data, taken):
    """Return column and record gradients after 0, 1, ... T replayed steps.

    Column gradients are what the mechanism is shown, in the public order of columns; those of
    records are in the order of rows. Each step is the end of a run of its own over a prefix of the
    transcript, so nothing is assumed about how the solver works inside.
    """
    seen = {}

    def keep(problem, *rest, threads, **options):
        seen.update(problem=problem, options=options | {"n_threads": threads.count})
        return FrankWolfe(problem, *rest, threads=threads, **options)

    with replaying(taken), patch.object(PLACES["FrankWolfe"], "FrankWolfe", keep):
        fit_estimator(clone(model), *data)
    problem, options = seen["problem"], seen["options"]
    states = []
    for steps in range(len(taken) + 1):
        selector = replay_state(taken.vertex[:steps].copy(), taken.sign[:steps].copy())
        state = solve(problem._replace(n_steps=steps), selector, random_stream(0), **options).state
        states.append((state.alpha.copy(), state.gradient.copy()))
    return states


def compare_inputs(model, pair, form, taken):
    """Compare what the mechanism is shown on two neighbours at every step, in integers.

    Both take the vertices `taken`, with the settings of `model`, whose `neighbors` need not be the
    pair's relation. Returns what breaks the declared sensitivity or the independence of records,
    and the largest difference of a column gradient, in fixed-point units.
    """
    one, other = (inputs(model, data, taken) for data in in_form(form, pair))
    found, largest = [], 0
    for step, ((alpha, q), (beta, r)) in enumerate(zip(one, other, strict=True)):
        if q[pair.shared[0]].tobytes() != r[pair.shared[1]].tobytes():
            found.append(f"another record's gradient differs after step {step}")
        # Differences of 64-bit integers, in Python's.
        moved = max(abs(a - b) for a, b in zip(alpha.tolist(), beta.tolist(), strict=True))
        largest = max(largest, moved)
        if moved > DECLARED[pair.relation]:
            found.append(f"a column gradient moved by {moved / SHARE:.3f} shares after step {step}")
    return found, largest


def random_transcript(n_columns, n_steps, seed):
    """Return vertices that have nothing to do with any data, each column a few times over."""
    rng = np.random.default_rng(seed)
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), n_steps)
    return Transcript(rng.integers(0, n_columns, n_steps), signs)
