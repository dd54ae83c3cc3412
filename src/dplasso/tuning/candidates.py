"""The settings that a search chooses among, the rows and the epsilon of each, and the tries."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline

from dplasso.data.refusals import of_a_stranger
from dplasso.data.store import Store
from dplasso.errors import DataError, NoiseWarning, ParameterError
from dplasso.estimators.base import PrivateLinearModel
from dplasso.estimators.fitting import check_columns_fit, method_of, warn_of_undeclared_names
from dplasso.estimators.record_wise import check_record_wise, rows_of, split
from dplasso.fit.public_knowledge import PARAMETERS
from dplasso.fit.records import LocalRecords, local_records
from dplasso.privacy.randomness import RandomStream, below, random_word
from dplasso.tuning.estimates import Estimate, Scorer
from dplasso.tuning.search_cost import rho_of_event

# What the search sets itself, or what must be the same for all tries.
_NOT_TUNED = (
    *("epsilon", "delta", "neighbors", "rows_per_person", "classes"),
    *("random_state", "ledger", "verbose"),
)
_ATTEMPTS = 40
# At least this part of what is allowed is used.
_ENOUGH = 1.0 - 1e-6


@dataclass(frozen=True)
class Candidate:
    """Settings that a try may draw, as the grid names them, and an unfitted estimator with them.

    `steps`: of a pipeline those before the last, which is the estimator. `given`: the estimator or
    pipeline that was given to the search. `records`: once there are data, the rows that the steps
    make.
    """

    params: dict[str, Any]
    estimator: Any
    steps: Pipeline | None = None
    given: Any = None
    records: LocalRecords | None = None

    @property
    def rows(self) -> LocalRecords:
        """The rows that the steps make."""
        assert self.records is not None
        return self.records


# A score, the settings that reached it, and the estimator fitted with them.
Try = tuple[Estimate, Candidate, Any]


def estimators_of(given: Any) -> list[Any]:
    """Return the estimators of a search: one, or a list that agree on what they learn."""
    if not isinstance(given, list | tuple):
        return [given]
    if not given:
        raise ParameterError("`estimator` is an empty list; give at least one estimator")
    first, *others = map(_shared_settings, given)
    for other in others:
        for name, value in other.items():
            if value != first[name]:
                raise ParameterError(
                    f"the estimators of a search must agree on {name}, and have {first[name]!r} "
                    f"and {value!r}"
                )
    return list(given)


def _shared_settings(estimator: Any) -> dict[str, Any]:
    last = last_of(estimator)
    known = last.get_params(deep=False)
    classes = known.get("classes")
    return {
        "what they predict (classes or numbers)": "numbers" if is_regressor(last) else "classes",
        "neighbors": known.get("neighbors", "add-remove"),
        "rows_per_person": known.get("rows_per_person", 1),
        "classes": None if classes is None else list(classes),
        "target_bounds": known.get("target_bounds"),
    }


def list_candidates(estimator: Any, grid: Any, delta: float) -> list[Candidate]:
    """Return the settings of a grid, as scikit-learn's `ParameterGrid` reads it.

    Of several estimators `grid` is one for all of them, or a list of one for each.
    """
    estimators = estimators_of(estimator)
    grids = [grid] if estimators == [estimator] else grid
    if isinstance(grids, Mapping):
        grids = [grids] * len(estimators)
    if len(grids) != len(estimators):
        raise ParameterError(
            f"`grid` has {len(grids)} entries for {len(estimators)} estimators: give one grid for "
            "each, {} where nothing is tuned, or one mapping for all"
        )
    pairs = zip(estimators, grids, strict=True)
    return [found for one, own in pairs for found in _settings_of(one, own, delta)]


def _settings_of(estimator: Any, grid: Any, delta: float) -> list[Candidate]:
    """Return copies of an estimator with the settings of a grid.

    They lack what the search sets itself; `delta` is that of every try.
    """
    base = clone(last_of(estimator))
    known = base.get_params(deep=False)
    if "epsilon" not in known:
        raise TypeError(f"{type(base).__name__} has no parameter epsilon: it is not a private fit")
    if known.get("random_state") is not None:
        raise ParameterError("give `random_state` to PrivateSearch, which sets that of every try")
    if known.get("ledger") is not None:
        raise ParameterError(
            "give the `ledger` to PrivateSearch, which makes one charge for all tries"
        )
    ours = {"delta": delta, "verbose": None}
    base.set_params(**{name: value for name, value in ours.items() if name in known})
    grids: Sequence[Any] = [grid] if isinstance(grid, Mapping) else grid
    found = []
    for params in ParameterGrid(grids):
        steps, settings = settings_by_step(estimator, params)
        if fixed := [name for name in settings if name in _NOT_TUNED]:
            raise ValueError(f"{fixed[0]} cannot be tuned: it is the same for every try")
        one = clone(base).set_params(**settings)
        found.append(Candidate(dict(params), one, steps, given=estimator))
    if not found:
        raise ValueError("the grid holds no settings; give at least one")
    return found


def with_records(candidates: list[Candidate], X: Any, y: Any) -> list[Candidate]:
    """Return candidates with their rows: made once for all whose steps have the same settings."""
    made = dict[Any, tuple[Pipeline | None, LocalRecords]]()
    found = []
    for candidate in candidates:
        # The grid's own values, which live as long as the candidates.
        own = [(name, id(candidate.params[name])) for name in _of_steps(candidate)]
        ours = isinstance(candidate.estimator, PrivateLinearModel)
        key = (ours, id(candidate.given) if candidate.steps else None, *own)
        if key not in made:
            steps, rows = candidate.steps, X
            if steps is not None:
                steps, rows = rows_of(steps, X, fit=True)
            labels = ours and not is_regressor(candidate.estimator)
            made[key] = steps, local_records(candidate.estimator, rows, y, takes_matrix=labels)
            _check_records(candidate.estimator, made[key][1])
        steps, records = made[key]
        found.append(replace(candidate, steps=steps, records=records))
    return found


def _of_steps(candidate: Candidate) -> list[str]:
    steps = [] if candidate.steps is None else [name for name, _ in candidate.steps.steps]
    return [name for name in sorted(candidate.params) if name.partition("__")[0] in steps]


def _check_records(estimator: Any, records: LocalRecords) -> None:
    if records.origin is not None and records.origin.edges is not None:
        raise DataError(
            "a search does not count what the edges of the schema's bins cost, which were released "
            "from the same records: take a schema whose edges were known without them"
        )
    check_columns_fit(estimator, records.shape[1])
    warn_of_undeclared_names(records.feature_names)
    if isinstance(records.X, Store) and not isinstance(estimator, PrivateLinearModel):
        raise DataError(
            f"{type(estimator).__name__} is not known to read stores; give the rows in memory: "
            "store.X.tocsr(), store.y"
        )


def cost_of_try(estimator: Any, records: LocalRecords | None) -> tuple[float, float]:
    """Return what a fit costs in zCDP, and its draws' total variation from those accounted.

    Of these records, whose classes are declared, or before there are any.
    An estimator of another package states its cost in a method ``privacy_event()``, as an event of
    ``dp-accounting``.
    """
    if hasattr(estimator, "privacy_event"):
        rho, variation = rho_of_event(estimator.privacy_event()), 0.0
    elif isinstance(estimator, PrivateLinearModel):
        method = method_of(estimator)
        budget = method.cost()
        if records is not None:
            budget = method.budget(method.targets.task(records), records.shape[1])
        # Its part of delta is the variation times 1 + e^x for some x >= 0.
        rho, variation = budget.rho, budget.sampling_delta / 2.0
    else:
        raise TypeError(
            f"{type(estimator).__name__} does not say what a fit costs: it needs a method "
            "privacy_event() that returns an event of dp-accounting"
        )
    if not math.isfinite(rho):
        raise ValueError(f"a fit with {estimator!r} is not private, so no search can count it")
    return rho, variation


def fix_starts(candidates: list[Candidate]) -> str:
    """Give each candidate its prior and geometry for its columns; return what they are, in words.

    The parts that tries are fitted on do not know how their columns are called. The classes are
    declared already.

    Raises ValueError if a start is not for such records.
    """
    found = dict[str, None]()
    for candidate in candidates:
        estimator, rows = candidate.estimator, candidate.rows
        if isinstance(estimator, PrivateLinearModel) and hasattr(estimator, "prior"):
            method = method_of(estimator)
            started = method.starting(method.targets.task(rows), rows)
            known = dict.fromkeys(PARAMETERS) | {"prior": started.prior}
            known |= {"public_rows": started.geometry}
            estimator.set_params(**{k: v for k, v in known.items() if hasattr(estimator, k)})
            found[started.public_knowledge] = None
    return ", or ".join(filter(None, found))


def warn_of_noise(candidates: list[Candidate]) -> None:
    """Warn (NoiseWarning) if by public numbers no try can find anything; see `Method`."""
    told = []
    for candidate in candidates:
        if not isinstance(candidate.estimator, PrivateLinearModel):
            return
        method, rows = method_of(candidate.estimator), candidate.rows
        if method.n_records is None or method.from_prior:
            return
        task = method.targets.task(rows)
        budget = method.budget(task, rows.shape[1])
        n_records = float(method.n_records)
        told.append(method.noise_warning(task, budget, n_records, rows.shape[1]))
    if all(told):
        warnings.warn(f"a try: {told[0]}", NoiseWarning, stacklevel=3)


def largest_variation(candidates: list[Candidate], epsilon: float) -> float:
    """Return the largest variation of the candidates' fits, which get this epsilon.

    A fit of a try has a smaller epsilon than the whole search, and so draws no less exactly.
    """
    for candidate in candidates:
        candidate.estimator.set_params(epsilon=float(epsilon))
    return max(cost_of_try(one.estimator, one.records)[1] for one in candidates)


def give_epsilon(candidate: Candidate, rho: float, delta: float) -> None:
    """Set the largest epsilon with which a candidate's fit costs at most `rho`, in zCDP."""
    estimator = candidate.estimator

    def cost(epsilon: float) -> float:
        estimator.set_params(epsilon=epsilon)
        return cost_of_try(estimator, candidate.records)[0]

    best = largest_within(cost, rho, delta)
    if best == 0.0:
        raise ValueError(f"no epsilon keeps a fit with {estimator!r} within a try's budget")
    estimator.set_params(epsilon=best)


def largest_within(cost: Callable[[float], float], allowed: float, delta: float) -> float:
    """Return the largest epsilon whose zCDP is allowed, to a millionth of that; 0 if there is none.

    The cost has to grow with epsilon, about with its square. Where to begin follows from `delta`.
    """
    epsilon, best = allowed + 1.9 * math.sqrt(-allowed * math.log(delta)), 0.0
    for _ in range(_ATTEMPTS):
        spent = cost(epsilon)
        if spent <= allowed:
            best = max(best, epsilon)
            if spent >= _ENOUGH * allowed:
                break
        aim = 0.5 * (1.0 + _ENOUGH) * allowed
        epsilon *= min(max(math.sqrt(aim / spent), 0.25), 2.0) if spent > 0.0 else 2.0
    return best


def best_of(
    candidates: list[Candidate],
    tries: int,
    parts: Mapping[int, tuple[LocalRecords, LocalRecords]],
    scorer: Scorer,
    stream: RandomStream,
    *,
    seeded: bool,
) -> Try | None:
    """Make the tries and return the best; `parts` of each candidate's rows, by their identity."""
    best, highest = None, -math.inf
    for _ in range(tries):
        candidate = draw_candidate(candidates, stream)
        fitted_on, scored_on = parts[id(candidate.records)]
        fitted = clone(candidate.estimator)
        if seeded and "random_state" in fitted.get_params(deep=False):
            fitted.set_params(random_state=int(random_word(stream)) >> 33)
        # A warning for every fit would tell how many there were.
        with warnings.catch_warnings(), of_a_stranger(fitted):
            warnings.simplefilter("ignore")
            fitted.fit(fitted_on.X, fitted_on.y)
        estimate = scorer.estimate(scorer.sums(fitted, scored_on, stream))
        height = estimate.value if scorer.metric.larger_is_better else -estimate.value
        if best is None or height > highest:
            best, highest = (estimate, candidate, fitted), height
    return best


def draw_candidate(candidates: list[Candidate], stream: RandomStream) -> Candidate:
    """Draw one candidate uniformly, whatever was drawn before."""
    return candidates[int(below(stream, len(candidates)))]


def last_of(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    parts = split(estimator)
    return estimator if parts is None else parts[1]


def settings_by_step(
    estimator: Any, params: Mapping[str, Any]
) -> tuple[Pipeline | None, dict[str, Any]]:
    """Return the steps before the last with their settings, and the settings of the last.

    Without a pipeline there are no steps. Raises ValueError for a step that learns from the
    records, or a setting of none.
    """
    if split(estimator) is None:
        return None, dict(params)
    steps, last = clone(estimator[:-1]), f"{estimator.steps[-1][0]}__"
    of_last = {one.removeprefix(last): v for one, v in params.items() if one.startswith(last)}
    others = {one: value for one, value in params.items() if not one.startswith(last)}
    names = [name for name, _ in steps.steps]
    if unknown := [one for one in others if one.partition("__")[0] not in names]:
        raise ValueError(
            f"{unknown[0]} is not a setting of a step; write STEP__NAME, of the last {last}NAME"
        )
    if others:
        steps.set_params(**others)
    check_record_wise(steps)
    return steps, of_last


def behind(candidate: Candidate, fitted: Any) -> Any:
    """Return a fitted last step behind the others, as the pipeline that is searched for."""
    if candidate.steps is None:
        return fitted
    return Pipeline([*candidate.steps.steps, (candidate.given.steps[-1][0], fitted)])


def results_of(candidates: list[Candidate], best: Try | None) -> dict[str, Any]:
    """Return a table of all settings, which are public, and the score of the one that is released.

    Its columns are named as in scikit-learn's `cv_results_`, as far as they are released.
    """
    count = len(candidates)
    named = list(dict.fromkeys(name for one in candidates for name in one.params))
    columns: dict[str, Any] = {}
    for name in named:
        column = np.ma.masked_array(np.empty(count, dtype=object), mask=True)
        for place, one in enumerate(candidates):
            if name in one.params:
                column[place] = one.params[name]
        columns[f"param_{name}"] = column
    scores = np.full((3, count), np.nan)
    released = np.zeros(count, bool)
    if best is not None:
        place = next(k for k, one in enumerate(candidates) if one is best[1])
        scores[:, place], released[place] = best[0], True
    return {
        "estimator": np.array([type(one.estimator).__name__ for one in candidates], object),
        **columns,
        "params": [one.params for one in candidates],
        "epsilon_of_try": np.array([one.estimator.epsilon for one in candidates]),
        "released": released,
        **dict(zip(("mean_test_score", "test_score_low", "test_score_high"), scores, strict=True)),
    }
