"""A whole fit of the gradient family: a count, energies, a dense run, perhaps cuts to a short list.

The budget is divided by shares of ``mu^2``, which add up exactly (docs/logistic.md).
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.blend import find_start, part_taken, weighed
from dplasso.gradient_descent.calibration import calibrate_margins
from dplasso.gradient_descent.counts import Classes
from dplasso.gradient_descent.energies import (
    CURVATURE_SHARE,
    REACH_SHARE,
    SCALES_SHARE,
    halvings_of,
    largest_eigenvalue,
    loads_of,
    pays,
    relative_energies,
    shrinking,
    threshold,
)
from dplasso.gradient_descent.measures import Measures
from dplasso.gradient_descent.plan import CONSTANT, SIGNIFICANT, RunPlan, largest
from dplasso.gradient_descent.release import (
    NO_ENERGIES,
    UNCHANGED,
    Calibration,
    NoisyWeights,
    scales_of,
)
from dplasso.gradient_descent.schedule import Schedule, further, schedule_for
from dplasso.gradient_descent.slopes import LinearModel
from dplasso.gradient_descent.solve import NoisyGradientDescent, gradient_unit
from dplasso.gradient_descent.state import NOWHERE, GradientState
from dplasso.matrix.unit_rows import NO_HALVINGS, Scaling, constant_entry
from dplasso.privacy.mechanisms.gaussian import GaussianSteps
from dplasso.privacy.parameters import check_records, share_bits
from dplasso.privacy.randomness import RandomStream
from dplasso.runtime.threads import Threads

# Rows grow when they are made unit rows of fewer columns, so a stage starts from this part of the
# weights before.
_START = 0.5


class GradientRun:
    """A fit by noisy gradient descent, from the count to the margins set right in the end.

    `records`: `Records`, or anything that answers as they do.
    `prefix`: where an interrupted fit had come to; its numbers are not drawn again.
    `classes`: their records are counted each; None counts them all.
    `started`: a public start, where it is found already, and what part of it is taken.
    """

    history = work = None

    def __init__(
        self,
        plan: RunPlan,
        mechanism: GaussianSteps,
        records: Any,
        stream: RandomStream,
        *,
        threads: Threads,
        prefix: GradientState | None = None,
        classes: Classes | None = None,
        started: tuple[NDArray[np.float64], float] | None = None,
    ) -> None:
        self.n_steps, self.skipped = plan.ends[-1], 0
        self._plan, self._mechanism, self._records = plan, mechanism, records
        self._stream, self._threads = stream, threads
        self._measures = Measures(plan, mechanism, records, stream, classes)
        self._calibration: Calibration | None = None
        self._constant = CONSTANT if plan.fit_intercept else 0.0
        self._stage = 0
        self._kept: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        # The count, 0 until there is one; the standard error of the starting weights, and what
        # bounds the curvature of the stage; then the margins it started from, if classes count.
        self._numbers = np.zeros(3) if prefix is None else prefix.numbers.copy()
        self._energies = NO_ENERGIES if prefix is None else prefix.energies
        # A public start, once it is found, then how long rows are in the columns of the stage.
        self._start = NOWHERE if prefix is None else prefix.start
        self._begun_from = started
        self._weigh(NOWHERE if prefix is None else prefix.counts)
        self._prepared: Any = None
        if prefix is not None and len(prefix):
            self._go_on(prefix)
            return
        # Records that cannot be used, or not held, are found before anything is paid for.
        check_records(records.n_records, share_bits(plan.n_records or records.n_records))
        self._prepared = self._part(self._scaling)

    def begin(self) -> None:
        """Take step 0: the count and the energies, unless an interrupted fit has them."""
        if self.skipped:
            return
        if not self._numbers[0]:
            counted, offset, counts = self._measures.count()
            self._numbers = np.concatenate([[counted, 0.0, 0.0], offset])
            self._weigh(counts)
            deviation = self._measures.deviation(SCALES_SHARE)
            if pays(counted, deviation):
                released, unit = self._measures.energies(self._scaling, SCALES_SHARE, counted)
                self._energies = relative_energies(released, unit, threshold(counted, deviation))
            self._start = self._found_start()
            self._numbers[2] = self._eigenvalue()
        self._solver = self._run(self._balanced())
        self._settle()

    def advance(self, first: int, last: int) -> None:
        """Take gradients `first` to `last`, counted from 1, both included."""
        # A fit that goes on from a checkpoint does not take its gradients again.
        done = max(first - 1, self.skipped)
        while done < last:
            if done == self._span[1]:
                self._begin_next()
            begin, end = self._span
            reached = min(last, end)
            self._solver.advance(done - begin + 1, reached - begin)
            done = reached
        if done == self.n_steps and self._calibration is None:
            self._calibration = self._calibrated()

    def release(self, done: int | None = None) -> NoisyWeights | GradientState:
        """Return what the fit has released after `done` gradients, by default after all."""
        done = self.n_steps if done is None else done
        known: Any = self._numbers.copy(), self._energies, self._start, self._counts
        if not done:
            return GradientState.empty({"n_features": self._records.n_columns}, *known)
        if done < self.n_steps:
            solver, n_columns = self._solver, self._records.n_columns
            state = solver.weights.copy(), solver.velocity.copy(), solver.averaged.copy()
            return GradientState(done, n_columns, *state, self._kept, *known)
        return self._final()

    @property
    def counted(self) -> float:
        """The number of records, as given or as counted by step 0."""
        return float(self._numbers[0])

    def _settle(self) -> None:
        """Take as many gradients as the stage does, where it is the only one and adaptive."""
        if self._plan.stages[self._stage].is_adaptive:
            self.n_steps = self._solver.n_steps

    @property
    def _span(self) -> tuple[int, int]:
        """The gradients done before the stage and after it."""
        begin = self._plan.ends[self._stage] - self._plan.stages[self._stage].n_steps
        return begin, begin + self._solver.n_steps

    def _weigh(self, counts: NDArray[np.float64]) -> None:
        """Let all records weigh N, or less where classes weigh the same by their counts."""
        self._counts, self._weight = counts, float(self._numbers[0])
        if counts.size:
            loss, weight = self._measures.weighed(counts, self._weight)
            self._records, self._weight = replace(self._records, loss=loss), weight

    @property
    def _starting_constant(self) -> NDArray[np.float64]:
        """The weights of the constant entry, shape (K,), that classes counted start from."""
        return self._numbers[3:] / constant_entry(self._constant)

    def _balanced(self) -> NDArray[np.float64] | None:
        """Return the weights that the first run starts from; None for zeros."""
        if not self._numbers[3:].any():
            return None
        start = np.zeros((self._records.n_columns + 1, self._records.loss.n_outputs))
        start[-1] = self._starting_constant
        return start.ravel()

    def _eigenvalue(self) -> float:
        """Return what bounds the curvature of the stage that begins: N, or less by energies."""
        if not self._energies.size:
            return self._weight
        share = CURVATURE_SHARE / len(self._plan.stages)
        loads = loads_of(self._own_energies)
        released, unit = self._measures.energies(self._scaling, share, self.counted, loads)
        largest_own = largest_eigenvalue(released, unit, self.counted, self._constant, loads)
        return min(self._weight, largest_own / self._reach**2)

    @property
    def _own_energies(self) -> NDArray[np.float32]:
        """The energies of the columns of the stage, of all that a fit from a prior holds."""
        some = self._records.prior is not None and self._energies.size and self._kept.size
        return self._energies[self._kept] if some else self._energies

    @property
    def _reach(self) -> float:
        """How long rows are in the columns of the stage, as released; 1 where those are all."""
        return float(self._start[-1]) if self._start.size else 1.0

    @property
    def _reach_share(self) -> float:
        """What each stage may spend on that: rows have the length of all columns of a prior."""
        prior, stages = self._records.prior, self._plan.stages
        if prior is None or all(one.n_columns == len(prior.weights) for one in stages):
            return 0.0
        return REACH_SHARE / len(stages)

    def _released_reach(self) -> float:
        """Release how long rows are in the columns of the stage, where those are some of all."""
        if self._plan.stages[self._stage].n_columns == len(self._records.prior.weights):
            return 1.0
        return self._measures.reach(self._scaling, self._reach_share, float(self._numbers[0]))

    @property
    def _scaling(self) -> Scaling:
        """How the rows of the stage are scaled."""
        halvings, norm_bound = halvings_of(self._own_energies), self._plan.norm_bound
        if norm_bound is not None:
            norm_bound *= shrinking(self._energies)
        # From a prior, rows have their length in all columns, and the start its margins.
        around = NO_HALVINGS if self._records.prior is None else halvings_of(self._energies)
        return Scaling(self._kept, self._constant, norm_bound, halvings, around, self._reach)

    def _run(self, start: NDArray[np.float64] | None) -> NoisyGradientDescent:
        """Make the solver of the stage that begins, on the columns that are kept."""
        check_records(self._records.n_records, share_bits(self._numbers[0]))
        prepared, self._prepared = self._prepared, None
        scaling = self._scaling
        again = bool(self._energies.size or self._start.size or self._counts.size)
        if prepared is None or prepared[1] != self._unit or again:
            prepared = self._part(scaling)
        sizes = self._kept.size or self._records.n_columns, self._records.loss.n_outputs
        return NoisyGradientDescent(
            prepared[0],
            *sizes,
            prepared[1],
            self._schedule,
            self._stream,
            threads=self._threads,
            start=start,
            intercept=self._constant != 0.0,
            halvings=scaling.halvings,
        )

    def _part(self, scaling: Scaling) -> tuple[Any, float]:
        """Lay the records out for the stage that begins; return them, and their units."""
        unit = self._unit
        return self._records.part(scaling, unit, self._started()), unit

    def _started(self) -> Any:
        """Return the public model that margins start from, once its slope is found."""
        start, prior = self._start, self._records.prior
        return prior.stretched(start[0], start[1:-1]) if prior and start.size else None

    def _found_start(self) -> NDArray[np.float64]:
        """Return slope and constants of the public start, and the reach; nothing without one."""
        records = self._records
        if records.prior is None:
            return NOWHERE
        given = self._scaling, None, self._stream
        if self._begun_from is None:
            found = find_start(records, *given, **self._known(self._plan.start))
            self._begun_from = self._taken * found, self._taken
        return np.append(self._begun_from[0], self._released_reach())

    @property
    def _taken(self) -> float:
        """What part of the public start the margins start from."""
        if self._begun_from is not None:
            return self._begun_from[1]
        return part_taken(self._weight, self._measures.mu(self._plan.start), self._plan.learnt)

    def _known(self, share: float) -> dict[str, Any]:
        """Return what setting margins right needs to know besides them."""
        return {
            "n_records": self._weight,
            "mu": self._measures.mu(share),
            "sensitivity": self._mechanism.sensitivity,
            "fit_intercept": self._plan.fit_intercept,
        }

    @property
    def _schedule(self) -> Schedule:
        """The steps of the stage."""
        stage = self._plan.stages[self._stage]
        left = 1.0 - self._plan.calibration - self._plan.start
        left -= self._reach_share * len(self._plan.stages)
        if self._energies.size:
            left -= SCALES_SHARE + CURVATURE_SHARE
        mu, loss = self._measures.mu(stage.share * left), self._records.loss
        kappa = stage.kappa
        if stage.grows and math.isfinite(mu):
            told = self._weight * mu / self._mechanism.unit_sensitivity
            kappa *= further(told, loss.n_outputs * stage.n_columns)
        return schedule_for(
            self._numbers[2],
            mu,
            self._mechanism.sensitivity,
            None if stage.is_adaptive else stage.n_steps,
            kappa,
            loss.curvature,
        )

    @property
    def _unit(self) -> float:
        """Fixed-point units per unit of gradient: the same for all counts up to 2^30."""
        bits, bound = share_bits(self._numbers[0]), self._records.loss.residual_bound
        return gradient_unit(bound, float(self._schedule.noise_scales.max()), bits)

    def _calibrated(self) -> Calibration | None:
        """Set the margins of the complete model right; without noise only those from a prior."""
        share, records = self._plan.calibration, self._records
        if not share or (math.isinf(self._mechanism.mu) and not self._start.size):
            return None
        model, known = LinearModel(*self._averaged(), self._scaling), self._known(share)
        if self._start.size:
            return weighed(records, model, self._stream, self._start[:-1], self._taken, **known)
        # Around the margins they started from.
        centre = 0.0 * model.intercept + self._measures.beyond(records.loss.offset)
        centre[: self._numbers[3:].size] += self._numbers[3:]
        margins = records.margins(replace(model, intercept=model.intercept - centre))
        return calibrate_margins(margins, records.loss, self._stream, centre=centre, **known)

    def _averaged(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weights of the last stage, shape (k, K), and the constants of the margins."""
        weights, constant = self._solver.average()
        if self._plan.significant:
            least = SIGNIFICANT * self._error * scales_of(self._energies)
            weights = np.where(np.abs(weights) > np.reshape(least, (-1, 1)), weights, 0.0)
        if not constant.size:
            return weights, np.zeros(weights.shape[1])
        return weights, constant[0] * constant_entry(self._constant)

    @property
    def _error(self) -> float:
        """Standard error of the weight of a column that is not scaled."""
        return math.hypot(self._solver.schedule.standard_error, self._numbers[1])

    def _begin_next(self) -> None:
        """Keep the largest weights of the stage that is over, and start the next from them."""
        self._stage += 1
        weights, constant = self._solver.average()
        sizes = np.linalg.norm(weights, axis=1) if weights.shape[1] > 1 else weights[:, 0]
        places = largest(sizes, self._plan.stages[self._stage].n_columns)
        self._kept = self._kept[places] if self._kept.size else places
        if self._energies.size and self._records.prior is None:
            self._energies = self._energies[places]
        if self._start.size:
            self._start = np.append(self._start[:-1], self._released_reach())
        self._numbers[1:3] = _START * self._error, self._eigenvalue()
        start = _START * np.concatenate([weights[places], constant])
        if self._numbers[3:].any():
            start[-1] += (1.0 - _START) * self._starting_constant
        self._solver = self._run(start.ravel())

    def _go_on(self, state: GradientState) -> None:
        """Take up an interrupted fit where it was.

        Raises ValueError for a state of another plan: more would be taken than was paid for.
        """
        self.skipped, self._kept = state.done, state.columns
        ends = self._plan.ends
        self._stage = min(int(np.searchsorted(ends, state.done)), len(ends) - 1)
        self._solver = self._run(None)
        self._settle()
        n_kept = self._plan.stages[self._stage].n_columns if self._stage else 0
        n_start = 0 if self._records.prior is None else 2 + self._records.loss.n_outputs
        same = self._kept.size == n_kept and self._start.size == n_start
        if not same or self._solver.weights.shape != state.weights.shape:
            raise ValueError(
                f"a state after {state.done} gradients with {self._kept.size} columns of "
                f"{state.weights.size} weights is not one of this fit"
            )
        self._solver.weights[:] = state.weights
        self._solver.velocity[:] = state.velocity
        self._solver.averaged[:] = state.averaged

    def _final(self) -> NoisyWeights:
        """Return the model."""
        columns, (weights, intercept) = self._kept, self._averaged()
        if self._plan.significant:
            columns = np.flatnonzero(weights.any(axis=1))
            weights = weights[columns]
        stretched = self._calibration or UNCHANGED
        error, offset = stretched.slope * self._error, self._records.loss.offset
        slopes = stretched.slope * np.array(stretched.label_slopes or 1.0)
        # N is told where it is a release, or public by the neighbour relation.
        known = self._plan.n_records is not None or math.isinf(self._mechanism.mu)
        return NoisyWeights(
            n_steps=self.n_steps,
            n_features=self._records.n_columns,
            columns=columns,
            weights=np.ascontiguousarray(weights.T) * (slopes / self._reach).reshape(-1, 1),
            intercept=(intercept + offset) * slopes + np.array(stretched.shift) - offset,
            standard_error=error / self._reach,
            intercept_error=error * constant_entry(self._constant),
            energies=self._energies,
            prior_slope=stretched.prior_slope,
            n_records=None if known else float(self._numbers[0]),
            label_slopes=np.array(stretched.label_slopes),
        )
