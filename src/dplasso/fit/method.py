"""How a model is fitted: the parameters that every method has, checked once, and its contract."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array, diags_array

from dplasso.data.labels import checked_class_weight
from dplasso.encoding.origin import schema_of
from dplasso.errors import NoiseWarning, ParameterError, shown
from dplasso.fit.public_knowledge import (
    PARAMETERS,
    Learn,
    Start,
    geometry_of,
    start_of,
)
from dplasso.fit.task import Bounded, Labels, Task
from dplasso.gradient_descent.schedule import CONSTANT
from dplasso.ledger import Ledger, checked_ledger
from dplasso.matrix.compressed import compress
from dplasso.matrix.starting import StartingModel, useful_slope
from dplasso.matrix.unit_rows import row_factors
from dplasso.model.linear import MatchedPrior
from dplasso.phases.count import (
    COUNT,
    COUNT_SHARE,
    SPREAD_SHARE,
    Spans,
    counted_of,
    spread,
)
from dplasso.phases.pairs import Blocks
from dplasso.phases.phase import Phase, Plan
from dplasso.phases.released import Released
from dplasso.phases.releases import Spread
from dplasso.privacy.budget import Budget, build_budget
from dplasso.privacy.parameters import (
    check_delta,
    check_epsilon,
    check_neighbors,
    check_rows_per_person,
)
from dplasso.privacy.randomness import check_random_state
from dplasso.privacy.statement import PrivacyStatement, StatedRelease, make_statement
from dplasso.privacy.wording import COUNT_BY_CLASS, COUNT_PRIVATE, COUNT_PUBLIC, COUNT_UNUSED
from dplasso.runtime.threads import count_threads, thread_pool, usable_cores

_MOST_THREADS = 64
# Assumed where a cost is asked for before there are data.
MANY_COLUMNS = 2**24
# Below this signal, a dense fit of texts is rarely better than guessing (docs/logistic.md).
LEAST_SIGNAL = 5.0


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of fitting with its parameters, checked.

    `params`: as a model file holds them. `start` and `learn_geometry` make `prior` and `geometry`
    once columns and classes are known. `levels`, `pairs`: columns that may not enter.
    `norm_bound`: on the rows; None for unit rows.
    """

    params: Mapping[str, Any]
    targets: Labels | Bounded
    epsilon: float
    delta: float
    neighbors: str
    fit_intercept: bool
    rows_per_person: int
    n_threads: int
    random_state: Any = None
    ledger: Ledger | None = None
    start: Start | None = None
    prior: MatchedPrior | None = None
    n_records: int | None = None
    levels: Spans = ()
    pairs: Blocks = ()
    norm_bound: float | None = None
    learn_geometry: Learn | None = None
    # A `Geometry`, or `PublicPredictions` of the columns that `infer` names.
    geometry: Any = None
    # Whether each column may have a unit of its own, since no schema made its entries.
    raw_columns: bool = True

    # Whether y may have a column for each label; measured bytes of memory for an empty column.
    many_labels: ClassVar[bool] = False
    column_bytes: ClassVar[int] = 12

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """Check the parameters of an estimator; TypeError, ValueError as `common_parameters`."""
        raise NotImplementedError

    @property
    def is_private(self) -> bool:
        """Whether epsilon is finite."""
        return not math.isinf(self.epsilon)

    @property
    def from_prior(self) -> bool:
        """Whether the fit starts from a prior, known or not yet."""
        return self.start is not None or self.prior is not None

    @property
    def measures_columns(self) -> bool:
        """Whether gradients first find the units and centres of columns, given enough records."""
        public = self.from_prior or self.learn_geometry is not None
        return self.raw_columns and self.norm_bound is None and not public

    @property
    def one_process(self) -> str:
        """What takes no partitions of the rows, in words; empty for nothing."""
        return "" if self.learn_geometry is None else "`public_rows`"

    @property
    def starting_model(self) -> StartingModel | None:
        """The prior as the rows of a fit take it."""
        if self.prior is None:
            return None
        weights = np.ascontiguousarray(self.prior.weights.T)
        slope = useful_slope(weights)
        return StartingModel(weights * slope, self.prior.intercept, slope)

    @property
    def public_knowledge(self) -> str:
        """Prior and public rows in words, for a ledger; empty for neither."""
        return " and ".join(
            public.description for public in (self.prior, self.geometry) if public is not None
        )

    def starting(self, task: Task, records: Any) -> Self:
        """Return the method once classes and columns are known, with prior, geometry and levels."""
        method = replace(self, params=self.targets.written(self.params, task.classes))
        origin, schema = records.origin, schema_of(records.origin)
        if schema is not None:
            levels, pairs = schema.levels, schema.pairs
            method = replace(method, raw_columns=False, levels=levels, pairs=pairs)
        elif origin is not None and origin.binarize:
            method = replace(method, raw_columns=False)
        if self.start is not None:
            method = replace(method, prior=self.start(self, task, records))
        if self.learn_geometry is not None:
            method = replace(method, geometry=self.learn_geometry(records))
        return method

    def as_read(self, rows: csr_array) -> csr_array:
        """Return rows scaled as noisy gradient descent scales them."""
        with thread_pool(self.n_threads) as threads:
            constant = CONSTANT if self.fit_intercept else 0.0
            factors = row_factors(compress(rows)[0], constant, self.norm_bound, threads)
        return csr_array(diags_array(factors) @ rows)

    def count_share(self, task: Task) -> float:
        """Return the share of the budget for the counts, more if margins start where they say."""
        starts = self.fit_intercept and not self.from_prior
        return task.counting if starts else COUNT_SHARE

    def fitted_share(self, task: Task) -> float:
        """Return the share of the budget that learns weights."""
        return 1.0 - self.count_share(task) - SPREAD_SHARE * task.spreads

    def counting(self, task: Task, first: Phase) -> list[Phase]:
        """Return the phases before all others: `first`, which counts records, and the spread."""
        return [first, spread()] if task.spreads else [first]

    def spread(self, task: Task, released: Released, budget: Budget) -> Task:
        """Return the task with the spread of its targets, where that is released."""
        last_spread = released.last(Spread)
        if last_spread is None:
            return task
        signal = counted_of(released).total * budget.mu_of(1.0) / budget.moved(1.0)
        return task.spread(last_spread.deviation, signal)

    def warn_of_noise(self, task: Task, budget: Budget, n_records: float) -> None:
        """Warn if the noise outweighs the signal of the records.

        The signal is the gradient of N rows that agree, over the noise, without public knowledge.
        """
        if budget.leak or self.from_prior or self.geometry is not None:
            return
        signal = n_records * budget.mu_of(self.fitted_share(task)) / budget.moved(1.0)
        if signal / max(2, task.n_outputs) >= LEAST_SIGNAL:
            return
        records = f"{n_records:,.0f} records"
        if self.n_records is None and self.neighbors == "add-remove":
            records = f"about {records} (a noisy count)"
        of = f" of {task.n_outputs:,} classes" if task.n_outputs > 2 else ""
        warnings.warn(
            f"with {records}{of} and epsilon={budget.epsilon:g}, the noise outweighs what the "
            "records can tell: the model may be no better than chance; more records or a larger "
            "epsilon help",
            NoiseWarning,
            stacklevel=5,
        )

    def plan(self, task: Task, n_features: int) -> Plan:
        """Return the phases of a fit."""
        raise NotImplementedError

    def budget(self, task: Task, n_features: int) -> Budget:
        """Return what a fit spends; the draws of its phases decide how exactly."""
        plan = self.plan(task, n_features)
        return build_budget(
            plan.draws,
            epsilon=self.epsilon,
            delta=self.delta,
            n_iter=max(1, plan.n_steps),
            neighbors=self.neighbors,
            rows_per_person=self.rows_per_person,
            # A ledger adds up zCDP.
            plain_sum=self.ledger is None,
        )

    def cost(self, n_features: int = MANY_COLUMNS) -> Budget:
        """Return what a fit spends before there are data; of two classes if none are declared."""
        return self.budget(self.targets.of_size(), n_features)

    def statement(
        self,
        task: Task,
        budget: Budget,
        n_features: int,
        before: Sequence[StatedRelease] = (),
        *,
        by_person: bool = False,
    ) -> PrivacyStatement:
        """Return what a fit guarantees after the releases `before` of the same records."""
        plan = self.plan(task, n_features)
        return make_statement(
            budget,
            [*before, *plan.stated(budget)],
            seeded=self.random_state is not None,
            classes_declared=self.targets.is_declared or task.many_labels,
            records=use_of_count(plan, budget, self.n_records),
            n_classes=task.classes.size,
            target_bounds=task.target_bounds,
            prior="" if self.prior is None else self.prior.description,
            public_rows="" if self.geometry is None else self.geometry.description,
            many_labels=task.many_labels,
            by_person=by_person,
        )


def use_of_count(plan: Plan, budget: Budget, n_records: int | None) -> str:
    """Return how the number of records, which may be given as public, enters a fit."""
    counts = [phase for phase in plan.phases if phase.name == COUNT]
    if budget.leak or not (counts or n_records):
        return COUNT_UNUSED
    # Under replace-one the number of rows is public.
    if n_records is not None or not counts[0].numbers(budget)["sensitivity"]:
        return COUNT_PUBLIC
    return COUNT_BY_CLASS if counts[0].numbers(budget)["counts"] > 1 else COUNT_PRIVATE


def common_parameters(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `Method`, checked; TypeError or ValueError names the parameter."""
    epsilon = check_epsilon(params["epsilon"])
    ledger = checked_ledger(
        params.get("ledger"),
        epsilon=epsilon,
        random_state=params["random_state"],
        mechanism=params.get("mechanism", "gaussian"),
    )
    targets = targets_of(params)
    right = "`None` or a whole number other than 0 (-1 for all cores)"
    n_jobs = word_or_number(params, "n_jobs", {None: None}, lambda n: n != 0, right, Integral)
    return {
        "params": {k: v for k, v in params.items() if k not in PARAMETERS},
        "targets": targets,
        "epsilon": epsilon,
        "delta": check_delta(params["delta"]),
        "neighbors": check_neighbors(params["neighbors"]),
        "fit_intercept": bool(params["fit_intercept"]),
        "rows_per_person": check_rows_per_person(params["rows_per_person"]),
        # More threads would only wait for each other, and each needs memory.
        "n_threads": min(count_threads(n_jobs), max(_MOST_THREADS, usable_cores())),
        "start": start_of(params),
        "learn_geometry": geometry_of(params.get("public_rows"), params.get("verbose")),
        "ledger": ledger,
        "random_state": check_random_state(params["random_state"]),
    }


def targets_of(params: Mapping[str, Any]) -> Labels | Bounded:
    """Return what an estimator's parameters say of its targets; ValueError if they are invalid."""
    clips = not math.isinf(params["epsilon"]) and params.get("mechanism") != "paper"
    if "target_bounds" in params:
        targets = Bounded(checked_target_bounds(params["target_bounds"]))
        # Without privacy nothing is clipped while predictions stay in the interval.
        return targets if clips else replace(targets, bound=2.0, spreads=False)
    labels = Labels(
        params.get("classes"), params.get("class_weight"), params["rows_per_person"], clips
    )
    if labels.weight is not None and not labels.is_balanced:
        checked_class_weight(labels.weight, labels.declared)
    return labels


def checked_target_bounds(bounds: Any) -> tuple[float, float]:
    """Return the ends of a regression's interval; ValueError if it is missing or not finite."""
    if bounds is None:
        raise ParameterError(
            "`target_bounds` is missing: give the interval (low, high) that the targets are "
            "publicly known to lie in; it must not be taken from the data"
        )
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    # Between two of the smallest numbers there is no middle.
    if not (math.isfinite(low) and math.isfinite(high) and 0.5 * high - 0.5 * low > 0.0):
        raise ParameterError(
            "`target_bounds` must be two finite numbers (low, high), low < high, got "
            + shown(bounds)
        )
    return low, high


def word_or_number(
    params: Mapping[str, Any],
    name: str,
    words: Mapping[str | None, Any],
    valid: Callable[[Any], bool],
    right: str,
    kind: Any = Real,
) -> Any:
    """Return the meaning of the parameter's word, or its number if that is valid."""
    value = params[name]
    if (value is None or isinstance(value, str)) and value in words:
        return words[value]
    if isinstance(value, kind) and not isinstance(value, bool) and valid(value):
        return int(value) if kind is Integral else float(value)
    raise ParameterError(f"`{name}` must be {right}, got {shown(value)}")


def checked_count(params: Mapping[str, Any], name: str) -> int | None:
    """Return a parameter that is a whole number of at least 1, or None."""
    count: int | None = word_or_number(
        params, name, {None: None}, lambda n: n > 0, "`None` or a whole number >= 1", Integral
    )
    return count
