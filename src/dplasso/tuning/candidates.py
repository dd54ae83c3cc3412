"""The candidate settings of a search, its two parts of the rows, and the tries that are drawn."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_regressor
from sklearn.model_selection import ParameterGrid

from dplasso.data.store import Store, check_entries
from dplasso.encoding.origin import refuse_lost_edges, warn_of_draft
from dplasso.errors import DataError, ParameterError, ParameterTypeError, shown
from dplasso.estimators.base import PrivateLinearModel
from dplasso.estimators.fitting import (
    check_columns_fit,
    fit_estimator,
    method_of,
    warn_of_undeclared_names,
)
from dplasso.fit.public_knowledge import PARAMETERS, refuse_private
from dplasso.fit.records import LocalRecords, local_records, rows_within_limit
from dplasso.fit.task import Task
from dplasso.privacy.randomness import RandomStream, below, next_words, random_word, word_buffers
from dplasso.tuning.estimates import Estimate, Scorer

# Parameters that the search sets itself, or that must be the same for all tries.
_NOT_TUNED = (
    *("epsilon", "delta", "neighbors", "rows_per_person", "classes"),
    *("random_state", "ledger", "verbose"),
)
# Parameters that several estimators must agree on.
_SHARED = ("neighbors", "rows_per_person", "classes", "target_bounds")
_ATTEMPTS = 40
# The search for an epsilon ends when it uses this share of the allowed cost.
_ENOUGH = 1.0 - 1e-6


class Candidate(NamedTuple):
    """Settings that a try may draw, and an estimator that has them."""

    params: dict[str, Any]
    estimator: Any


# A score, the candidate that reached it, and the fitted estimator.
Try = tuple[Estimate, Candidate, Any]


def estimators_of(estimator: Any) -> list[Any]:
    """Return the estimators of a search as a list; they must predict the same kind of target."""
    estimators = list(estimator) if isinstance(estimator, list | tuple) else [estimator]
    if not estimators:
        raise ParameterError("`estimator` is an empty list; pass at least one estimator")
    for each in estimators:
        if not isinstance(each, PrivateLinearModel):
            raise ParameterTypeError(
                f"`estimator` must be an estimator of dplasso, or a list of them, got "
                f"{type(each).__name__}; in a pipeline, the search is the last step"
            )
    first = estimators[0]
    for other in estimators[1:]:
        if is_regressor(first) != is_regressor(other):
            raise ParameterError("the estimators of a search must all predict classes, or numbers")
        for name in _SHARED:
            values: list[Any] = [getattr(each, name, None) for each in (first, other)]
            if not np.array_equal(*values):
                raise ParameterError(
                    f"the estimators of a search must agree on {name}, but have "
                    + " and ".join(map(shown, values))
                )
    return estimators


def list_candidates(estimator: Any, grid: Any, delta: float) -> list[Candidate]:
    """Return the candidates of a grid for all estimators, or of a list of one grid for each."""
    estimators = estimators_of(estimator)
    grids = [grid] if estimators == [estimator] else grid
    if isinstance(grids, Mapping):
        grids = [grids] * len(estimators)
    if len(grids) != len(estimators):
        raise ParameterError(
            f"`grid` has {len(grids)} entries for {len(estimators)} estimators: pass one grid for "
            "each ({} to tune nothing), or one mapping for all"
        )
    pairs = zip(estimators, grids, strict=True)
    return [candidate for pair in pairs for candidate in _settings_of(*pair, delta)]


def _settings_of(estimator: Any, grid: Any, delta: float) -> list[Candidate]:
    """Return copies of an estimator with the settings of a grid, and `delta` for every try."""
    base = clone(estimator).set_params(delta=delta, verbose=None)
    if base.random_state is not None:
        raise ParameterError(
            "set `random_state` of PrivateSearch instead of its estimator; it seeds every try"
        )
    if base.ledger is not None:
        raise ParameterError(
            "set `ledger` of PrivateSearch instead of its estimator; one charge covers all tries"
        )
    grids: Sequence[Any] = [grid] if isinstance(grid, Mapping) else grid
    candidates = []
    try:
        settings = list(ParameterGrid(grids))
    except (TypeError, ValueError):
        # The message would quote the values.
        raise ParameterTypeError(
            "`grid` must map parameters to lists of values, or be a list of such mappings"
        ) from None
    for params in settings:
        if fixed := [name for name in params if name in _NOT_TUNED]:
            raise ValueError(f"{fixed[0]} cannot be tuned: it must be the same for every try")
        candidates.append(Candidate(dict(params), clone(base).set_params(**params)))
    if not candidates:
        raise ValueError("the grid holds no settings; pass at least one")
    return candidates


def records_of(candidates: list[Candidate], X: Any, y: Any) -> LocalRecords:
    """Return the rows of a search, checked for every candidate."""
    first = candidates[0].estimator
    records = local_records(first, X, y, takes_matrix=not is_regressor(first))
    if records.origin is not None and records.origin.edges is not None:
        raise DataError(
            "the schema has bin edges that were released from the same records, and a search does "
            "not include their cost: use a schema with public edges"
        )
    refuse_lost_edges(X)
    warn_of_undeclared_names(records.feature_names)
    warn_of_draft(records.origin)
    for candidate in candidates:
        refuse_private(candidate.estimator.get_params(deep=False), X)
        check_columns_fit(candidate.estimator, records.shape[1])
    return records


def entering_rows(
    inputs: LocalRecords, groups: ArrayLike | None, rows_per_person: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], bool]:
    """Return the rows within the limit, ascending, their persons' numbers, and if these are known.

    Where they are not, each row is a person.
    """
    person = inputs.people(groups)
    if person is None:
        if rows_per_person > 1:
            raise ParameterError(
                "`rows_per_person` needs `groups`, or a store with people: a search must put all "
                "rows of a person in the same part"
            )
        rows = np.arange(len(inputs.y))
        return rows, rows, False
    rows = np.flatnonzero(rows_within_limit(person, rows_per_person))
    return rows, person[rows], True


def draw_held_out(
    person: NDArray[np.intp], share: float, stream: RandomStream
) -> NDArray[np.bool_]:
    """Draw the rows on which tries are scored, by a word of 64 bits for each person."""
    # From a stream of their own, because the number of people must not change what tries draw.
    words = next_words(word_buffers(stream, 1)[0], int(person.max()) + 1)
    held: NDArray[np.bool_] = (words < np.uint64(share * 2.0**64))[person]
    if held.all() or not held.any():
        raise DataError(f"{person.size:,} rows are too few: none was left for fitting or scoring")
    return held


def divided(
    inputs: LocalRecords, rows: NDArray[np.intp], held: NDArray[np.bool_]
) -> tuple[LocalRecords, LocalRecords]:
    """Return the rows for fitting and those `held` out; of a store, which rows enter."""
    if isinstance(inputs.X, Store):
        check_entries(inputs.X)
    within = np.zeros((2, len(inputs.y)), dtype=np.bool_)
    within[held.astype(np.intp), rows] = True
    return inputs.only(within[0]), inputs.only(within[1])


def cost_of_try(
    estimator: Any, records: LocalRecords, task: Task | None = None
) -> tuple[float, float]:
    """Return the zCDP of a fit, and the total variation of its draws from the accounted ones.

    `task`: what the records are fitted for, if known: to find out, all labels are looked at.
    """
    method = method_of(estimator)
    task = method.targets.task(records) if task is None else task
    # Pairs and levels of a schema draw more.
    budget = method.starting(task, records).budget(task, records.shape[1])
    if budget.leak:
        raise ValueError(f"a fit with {estimator!r} is not private, so it cannot be in a search")
    # The fit's sampling delta is the variation times 1 + e^x for some x >= 0, so at least 2.
    return budget.rho, budget.sampling_delta / 2.0


def fix_starts(candidates: list[Candidate], records: LocalRecords) -> str:
    """Set each candidate's prior and public geometry by the column names; describe them in words.

    This comes before the records are divided, because the parts have no column names.
    """
    descriptions = dict[str, None]()
    for candidate in candidates:
        estimator = candidate.estimator
        if hasattr(estimator, "prior"):
            method = method_of(estimator)
            started = method.starting(method.targets.task(records), records)
            values = dict.fromkeys(PARAMETERS) | {"prior": started.prior}
            values |= {"public_rows": started.geometry}
            estimator.set_params(**{k: v for k, v in values.items() if hasattr(estimator, k)})
            descriptions[started.public_knowledge] = None
    return ", or ".join(filter(None, descriptions))


def give_epsilon(estimator: Any, rho: float, delta: float, records: LocalRecords) -> None:
    """Set the largest epsilon with which a fit of an estimator costs at most `rho` (zCDP)."""
    task = method_of(estimator).targets.task(records)

    def cost(epsilon: float) -> float:
        estimator.set_params(epsilon=epsilon)
        return cost_of_try(estimator, records, task)[0]

    best = largest_within(cost, rho, delta)
    if best == 0.0:
        raise ValueError(f"no epsilon keeps a fit with {estimator!r} within a try's budget")
    estimator.set_params(epsilon=best)


def largest_within(cost: Callable[[float], float], allowed: float, delta: float) -> float:
    """Return the largest epsilon whose cost is at most `allowed`, or 0 if there is none.

    The cost must grow about with the square of epsilon.
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
    parts: tuple[LocalRecords, LocalRecords],
    scorer: Scorer,
    stream: RandomStream,
    *,
    seeded: bool,
) -> Try:
    """Make tries, fitted on one part of the records and scored on the other; return the best."""
    best, highest = None, -math.inf
    fitted_on, scored_on = parts
    for _ in range(tries):
        # Uniformly, with replacement.
        candidate = candidates[int(below(stream, len(candidates)))]
        fitted = clone(candidate.estimator)
        if seeded:
            fitted.set_params(random_state=int(random_word(stream)) >> 33)
        # A warning for every fit would reveal the number of tries, which is private.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # A matrix has neither the levels and pairs of a schema nor names for intervals.
            more = fitted_on.within, fitted_on.origin, getattr(fitted, "infer", None)
            if all(value is None for value in more):
                fitted.fit(fitted_on.X, fitted_on.y)
            else:
                fit_estimator(fitted, records=fitted_on)
        estimate = scorer.estimate(scorer.sums(fitted, scored_on, stream))
        height = estimate.value if scorer.metric.larger_is_better else -estimate.value
        if best is None or height > highest:
            best, highest = (estimate, candidate, fitted), height
    assert best is not None, "there is at least one try"
    return best


def results_of(candidates: list[Candidate], best: Try) -> dict[str, Any]:
    """Return `cv_results_`: the public settings of all candidates, and the released score."""
    count = len(candidates)
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for candidate in candidates for name in candidate.params):
        column = np.ma.masked_array(np.empty(count, dtype=object), mask=True)
        for place, candidate in enumerate(candidates):
            if name in candidate.params:
                column[place] = candidate.params[name]
        columns[f"param_{name}"] = column
    scores = np.full((3, count), np.nan)
    released = np.zeros(count, bool)
    place = next(k for k, candidate in enumerate(candidates) if candidate is best[1])
    scores[:, place], released[place] = best[0], True
    return {
        "estimator": np.array(
            [type(candidate.estimator).__name__ for candidate in candidates], object
        ),
        **columns,
        "params": [candidate.params for candidate in candidates],
        "epsilon_of_try": np.array([candidate.estimator.epsilon for candidate in candidates]),
        "released": released,
        **dict(zip(("mean_test_score", "test_score_low", "test_score_high"), scores, strict=True)),
    }
