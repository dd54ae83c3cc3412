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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dplasso.cluster import worker as worker_module
from dplasso.estimators.fitting import fit_estimator
from dplasso.fit import lasso as lasso_module
from dplasso.fit import records as records_module
from dplasso.fit import run as run_module
from dplasso.fit import vertices as vertices_module
from dplasso.fit.hooks import Hooks
from dplasso.frank_wolfe import problem as problem_module
from dplasso.frank_wolfe.outputs import StandardOutputState
from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.solve import FrankWolfe, solve
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.matrix import design as design_module
from dplasso.matrix.design import Design
from dplasso.privacy.randomness import RandomStream, random_stream
from dplasso.runtime.threads import Threads
from dplasso.selection.replay import replay_state
from neighbours import N_COLUMNS, Pair, in_form

# One record's largest share of a gradient, in fixed-point units.
SHARE = 2**32
DECLARED = {"add-remove": SHARE, "replace-one": 2 * SHARE}

# How the solver may lay out rows it is given, though small data would never make it worth while:
# whether they are copied by columns, and whether popular columns' gradients stand together.
LAYOUTS = {
    "as given": (False, False),
    "by columns too": (True, False),
    "popular columns first": (True, True),
}

# The functions that a fit calls are globals of the modules that make up the one path. Calls whose
# public arguments are recorded, and calls whose results are.
_WATCHED_ARGUMENTS = (
    (problem_module, "lay_out"),
    (problem_module, "adopt"),
    (worker_module, "build_problem"),
    (vertices_module, "make_selector"),
    (records_module, "FrankWolfe"),
    (run_module, "make_statement"),
    (run_module, "run_in_chunks"),
)
_WATCHED_RESULTS = ((lasso_module, "build_mechanism"),)


@dataclass(frozen=True)
class Recording:
    """What one fit did that anybody, or only the code, could see.

    `calls` are the public side of the calls inside (parameters, dtypes, threads, sizes, in order),
    `texts` its representation, statement and all it printed, `totals` those told to the progress
    bar, `entropy` the bytes asked of the system call by call, `predicted` predictions for public
    rows, `numpy_state` whether numpy's global generator stayed as it was, and `error` what stopped
    the fit or the saving of its model.
    """

    calls: tuple[Any, ...]
    attributes: dict[str, bytes]
    pickled: bytes
    saved: bytes
    texts: tuple[str, ...]
    warned: tuple[Any, ...]
    totals: frozenset[int]
    entropy: tuple[int, ...]
    predicted: bytes
    numpy_state: bool
    error: str


def describe(value: Any) -> Any:
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
    if isinstance(value, FrankWolfe):
        return "solver", value.n_steps
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape
    if hasattr(value, "indptr"):
        return type(value).__name__, str(value.dtype), str(value.indices.dtype), value.shape[1]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value).__name__, tuple(describe(part) for part in value)
    if callable(value):
        return "function"
    return type(value).__name__, repr(value)


def _describe_matrix(X: Any) -> Any:
    if isinstance(X, np.ndarray):
        return "dense", str(X.dtype), X.shape[1]
    return describe(X)


def _describe_call(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if name == "lay_out":
        # X itself, whose number of rows is private.
        arguments = (_describe_matrix(arguments[0]), *arguments[1:])
    if name == "build_problem":
        # The labels.
        arguments = (arguments[0], str(arguments[1].dtype), *arguments[2:])
    if name == "adopt":
        # Both orientations of a store, and its numbering.
        arguments = tuple(tuple(str(part.dtype) for part in side[:2]) for side in arguments)
    named = {key: describe(options[key]) for key in sorted(options)}
    return name, tuple(describe(value) for value in arguments), named


def record(model: Any, data: tuple[Any, Any], taken: Transcript | None = None) -> Recording:
    """Fit a copy of `model` to (X, y), replaying `taken` if given, and write down all of it."""
    calls: list[Any] = []
    entropy: list[int] = []
    totals: set[int] = set()
    printed = io.StringIO()
    system_entropy = os.urandom

    def counted(size: int) -> bytes:
        # Not the compiler's names for its temporary files.
        if sys._getframe(1).f_globals.get("__name__", "").startswith("dplasso"):
            entropy.append(size)
        return system_entropy(size)

    def watched(module: Any, name: str) -> Any:
        function = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(_describe_call(name, arguments, options))
            return function(*arguments, **options)

        return call

    def watched_result(module: Any, name: str) -> Any:
        function = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            result = function(*arguments, **options)
            calls.append((name, repr(result)))
            return result

        return call

    fitted = clone(model)
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(printed))
        stack.enter_context(redirect_stderr(printed))
        warned = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        for module, name in _WATCHED_ARGUMENTS:
            stack.enter_context(patch.object(module, name, watched(module, name)))
        for module, name in _WATCHED_RESULTS:
            stack.enter_context(patch.object(module, name, watched_result(module, name)))
        stack.enter_context(patch.object(os, "urandom", counted))
        try:
            hooks = Hooks(progress=lambda _, total: totals.add(total), replay=taken)
            fit_estimator(fitted, *data, hooks)
            statement = fitted.privacy_
            texts = repr(fitted), str(statement), statement.to_json()
            predicted = fitted.predict_proba(_public_rows()).tobytes()
            saved = _saved(fitted)
            error = ""
        except Exception as stopped:
            texts, predicted, saved = (), b"", b""
            error = f"{type(stopped).__name__}: {stopped}"
    return Recording(
        calls=tuple(calls),
        attributes={name: pickle.dumps(value) for name, value in vars(fitted).items()},
        pickled=pickle.dumps(fitted),
        saved=saved,
        texts=(*texts, printed.getvalue()),
        warned=tuple((item.category.__name__, str(item.message)) for item in warned),
        totals=frozenset(totals),
        entropy=tuple(entropy),
        predicted=predicted,
        numpy_state=np.random.get_state()[1].tobytes() == before,  # noqa: NPY002
        error=error,
    )


def _saved(fitted: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model.npz")
        return (Path(folder) / "model.npz").read_bytes()


def _public_rows() -> NDArray[np.float64]:
    return np.random.default_rng(7).normal(size=(5, N_COLUMNS))


def differences(one: Recording, other: Recording) -> list[str]:
    """Name what differs between two recordings of fits that replayed the same transcript."""
    found = []
    for field in fields(Recording):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if left == right:
            continue
        if field.name == "attributes":
            names = sorted(left.keys() ^ right.keys())
            names += [name for name in left if name in right and left[name] != right[name]]
            found += [f"attribute {name}" for name in names]
        elif field.name == "calls":
            unlike = [pair for pair in zip(left, right, strict=False) if pair[0] != pair[1]]
            found.append(f"calls: {unlike or (len(left), len(right))}")
        elif isinstance(left, bytes):
            found.append(field.name)
        else:
            found.append(f"{field.name}: {left} and {right}")
    return found


def record_gradients(state: Any) -> NDArray[np.float64]:
    """Return every record's gradient q from a solver's state, in the order of the rows."""
    gradient: NDArray[np.float64] = state.gradient
    return gradient.T if isinstance(state, StandardOutputState) else gradient


def column_gradients(problem: Problem, state: Any) -> NDArray[np.int64]:
    """Return what the mechanism is shown, alpha, in the columns' public order."""
    alpha: NDArray[np.int64] = state.alpha
    internal = problem.design.numbering.internal
    return alpha[internal] if internal.size else alpha


@contextmanager
def layout(name: str) -> Iterator[None]:
    """Make every fit inside the block lay out its rows in one of the `LAYOUTS`."""
    by_columns, renumbered = LAYOUTS[name]
    with (
        patch.object(design_module, "worth_transposing", lambda *_: by_columns),
        patch.object(design_module, "worth_renumbering", lambda *_: renumbered),
    ):
        yield


def training_run(model: Any, data: tuple[Any, Any], taken: Transcript) -> tuple[Problem, Any]:
    """Return the problem and the options with which a fit makes its solver."""
    seen: dict[str, Any] = {}

    def keep(problem: Problem, *rest: Any, threads: Threads, **options: Any) -> Any:
        seen.update(problem=problem, options=options | {"n_threads": threads.count})
        return FrankWolfe(problem, *rest, threads=threads, **options)

    with patch.object(records_module, "FrankWolfe", keep):
        fit_estimator(clone(model), *data, Hooks(replay=taken))
    return seen["problem"], seen["options"]


def inputs(
    model: Any, data: tuple[Any, Any], taken: Transcript
) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return column and record gradients after 0, 1, ... T replayed steps.

    Each is a run of its own over a prefix of the transcript, so nothing is assumed about how the
    solver works inside.
    """
    problem, options = training_run(model, data, taken)
    states = []
    for steps in range(len(taken) + 1):
        selector = replay_state(taken.vertex[:steps].copy(), taken.sign[:steps].copy())
        state = solve(problem._replace(n_steps=steps), selector, random_stream(0), **options).state
        states.append((column_gradients(problem, state).copy(), record_gradients(state).copy()))
    return states


@dataclass(frozen=True)
class Comparison:
    """Mechanism inputs of two neighbours over all steps.

    `violations` are what breaks the declared sensitivity or the independence of records, `largest`
    is the largest difference of a column gradient, in fixed-point units.
    """

    violations: tuple[str, ...]
    largest: int


def compare_inputs(model: Any, pair: Pair, form: str, taken: Transcript) -> Comparison:
    """Compare what the mechanism is shown on two neighbours at every step, in integers.

    Both take the vertices `taken`, with the settings of `model`, whose `neighbors` need not be the
    pair's relation.
    """
    one, other = (inputs(model, data, taken) for data in in_form(form, pair))
    allowed = DECLARED[pair.relation]
    found, largest = [], 0
    for step, ((alpha, q), (beta, r)) in enumerate(zip(one, other, strict=True)):
        if q[pair.shared[0]].tobytes() != r[pair.shared[1]].tobytes():
            found.append(f"another record's gradient differs after step {step}")
        # Differences of 64-bit integers, in Python's.
        moved = max(abs(a - b) for a, b in zip(alpha.tolist(), beta.tolist(), strict=True))
        largest = max(largest, moved)
        if moved > allowed:
            found.append(f"a column gradient moved by {moved / SHARE:.3f} shares after step {step}")
    return Comparison(tuple(found), largest)


def random_transcript(n_columns: int, n_steps: int, seed: int) -> Transcript:
    """Return vertices that have nothing to do with any data, each column a few times over."""
    rng = np.random.default_rng(seed)
    return Transcript(
        rng.integers(0, n_columns, n_steps), rng.choice(np.array([-1, 1], dtype=np.int8), n_steps)
    )
