"""A whole fit of the gradient family: a count, a dense run, and perhaps a short list refitted.

The budget is divided by shares of ``mu^2``, which add up exactly (DESIGN.md, sections 5 and 8).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.release import NoisyWeights
from dplasso.gradient_descent.schedule import KAPPA, Schedule, schedule_for
from dplasso.gradient_descent.solve import NoisyGradientDescent
from dplasso.matrix.compressed import Compressed
from dplasso.matrix.unit_rows import UnitRows, constant_entry, row_factors, select_columns
from dplasso.privacy.gaussian_noise import LARGEST_SCALE, noise_table, noisy
from dplasso.privacy.mechanisms.gaussian import GaussianSteps
from dplasso.privacy.randomness import RandomStream, word_buffers
from dplasso.runtime.threads import Threads

# The constant entry of every row; larger ones cost accuracy.
CONSTANT = 0.1
# Shares of mu^2: of the count of the records, and, where a short list is asked for, of the part of
# a row that it keeps and of the run that chooses it.
COUNT_SHARE = 0.01
_KEPT_SHARE, _CHOICE_SHARE = 0.01, 0.7
# A run that is to rank the columns stops early: each |w| is then largest beside its noise.
_CHOICE_KAPPA = 0.1
# Weights beyond so many standard errors are significant.
SIGNIFICANT = 3.0


@dataclass(frozen=True)
class RunPlan:
    """The public parameters of a fit.

    Attributes
    ----------
    n_choice, n_refit : int
        Gradients of the first run, and of the refit of a short list (0 without).
    max_weights : int, "significant" or None
        How many weights are kept.
    fit_intercept : bool
        Whether every row has a constant entry.
    norm_bound : float or None
        As in `dplasso.matrix.unit_rows.row_factors`.
    n_records : int or None
        N, if it is public.
    """

    n_choice: int
    n_refit: int
    max_weights: int | str | None
    fit_intercept: bool
    norm_bound: float | None
    n_records: int | None

    @property
    def n_steps(self) -> int:
        """Gradients of the whole fit."""
        return self.n_choice + self.n_refit


def plan_steps(n_steps: int, max_weights: int | str | None, n_features: int) -> tuple[int, int]:
    """Divide the gradients between the run that chooses and the refit."""
    if not isinstance(max_weights, int) or max_weights >= n_features:
        return n_steps, 0
    refit = max(1, n_steps // 3)
    return n_steps - refit, refit


@dataclass(frozen=True)
class GradientState:
    """A fit between two gradients: functions of the noisy gradients so far, so released with them.

    Attributes
    ----------
    done : int
        Gradients so far.
    n_features : int
        D.
    weights, velocity, averaged : ndarray of float64
        Of the run that is under way, in internal order.
    columns : ndarray of int64
        Columns of a refit; empty before.
    numbers : ndarray of float64, shape (3,)
        The count, the part of a row that is kept, and the standard error of the starting weights.
    """

    kind: ClassVar[str] = "gradient state"

    done: int
    n_features: int
    weights: NDArray[np.float64]
    velocity: NDArray[np.float64]
    averaged: NDArray[np.float64]
    columns: NDArray[np.int64]
    numbers: NDArray[np.float64]

    def __len__(self) -> int:
        return self.done

    def coefficients(self) -> tuple[Any, NDArray[np.float64]]:
        """Raise: a fit that is not complete has no model."""
        raise ValueError("a fit that is not complete has no model")

    def agrees_with(self, other: Any) -> bool:
        """Return whether two runs can be one: the same state where they are as far."""
        if not isinstance(other, GradientState) or self.done != other.done:
            return True
        return all(
            np.array_equal(mine, others)
            for mine, others in zip(self.arrays().values(), other.arrays().values(), strict=True)
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file has to hold of it."""
        return {
            "weights": self.weights,
            "velocity": self.velocity,
            "averaged": self.averaged,
            "columns": self.columns,
            "numbers": np.concatenate([[float(self.done)], self.numbers]),
        }


def gradient_state_from(arrays: dict[str, NDArray[Any]], n_features: int) -> GradientState:
    """Rebuild a state from what a file holds."""
    numbers = arrays["numbers"].astype(np.float64)
    return GradientState(
        done=int(numbers[0]),
        n_features=n_features,
        weights=arrays["weights"].astype(np.float64),
        velocity=arrays["velocity"].astype(np.float64),
        averaged=arrays["averaged"].astype(np.float64),
        columns=arrays["columns"].astype(np.int64),
        numbers=numbers[1:],
    )


def empty_state(n_features: int) -> GradientState:
    """Return the state of a fit before its first gradient."""
    nothing = np.zeros(0)
    no_columns = np.zeros(0, dtype=np.int64)
    return GradientState(0, n_features, nothing, nothing, nothing, no_columns, np.zeros(3))


def noisy_sum(total: int, sensitivity: float, mu: float, stream: RandomStream) -> float:
    """Release a sum of numbers in [0, 1], each given in units of 2^-32.

    Parameters
    ----------
    total : int
        The sum, in units.
    sensitivity : float
        How far it can move between neighbours, in units of 1; 0 releases it as it is.
    mu : float
        Gaussian differential privacy to spend; infinity for no noise.
    stream : RandomStream
        Keys the noise.

    Returns
    -------
    float
        In units of 1.
    """
    if sensitivity == 0.0 or math.isinf(mu):
        return total / 2.0**32
    # Coarser units where the noise is so large that its words would not reach.
    scale, coarser = sensitivity / mu * 2.0**32, 0
    while scale > LARGEST_SCALE:
        scale, coarser = scale / 2.0, coarser + 1
    value = np.array([total >> coarser], dtype=np.int64)
    noisy(noise_table(scale), word_buffers(stream, 1)[0], value)
    return float(value[0]) * 2.0 ** (coarser - 32)


class GradientRun:
    """A fit by noisy gradient descent, from the count to the last gradient of a refit.

    Parameters
    ----------
    plan : RunPlan
        Public parameters.
    mechanism : GaussianSteps
        The budget.
    rows, columns : Compressed
        X both ways, in the same column numbers.
    original : ndarray of int or None
        Original numbers of the columns; None if they are as given.
    loss : Logistic
        The loss.
    labels : ndarray of int8, shape (N,)
        0 or 1.
    stream : RandomStream
        Keys the noise.
    threads : Threads
        Of the run.
    prefix : GradientState, optional
        Where an interrupted fit had come to; its numbers are not drawn again.

    Attributes
    ----------
    n_steps : int
        Gradients of the whole fit.
    """

    history = None
    work = None

    def __init__(
        self,
        plan: RunPlan,
        mechanism: GaussianSteps,
        rows: Compressed,
        columns: Compressed,
        original: NDArray[np.integer] | None,
        loss: Any,
        labels: NDArray[np.int8],
        stream: RandomStream,
        *,
        threads: Threads,
        prefix: GradientState | None = None,
    ) -> None:
        self.n_steps, self.skipped = plan.n_steps, 0
        self._plan, self._mechanism, self._columns = plan, mechanism, columns
        self._original, self._loss, self._labels = original, loss, labels
        self._stream, self._threads = stream, threads
        constant = CONSTANT if plan.fit_intercept else 0.0
        self._data = UnitRows(
            rows,
            columns,
            row_factors(rows, constant, plan.norm_bound, threads),
            columns.indptr.size - 1,
            constant_entry(constant),
        )
        self._kept: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._numbers = np.zeros(3)
        if prefix is None or not len(prefix):
            self._numbers[0] = self._count()
            self._solver = self._run(self._data, self._choice_schedule(), None)
        else:
            self._go_on(prefix)

    def advance(self, first: int, last: int) -> None:
        """Take gradients `first` to `last`, counted from 1, both included."""
        n_choice = self._plan.n_choice
        # A fit that goes on from a checkpoint does not take its gradients again.
        first = max(first, self.skipped + 1)
        if first <= n_choice:
            self._solver.advance(first, min(last, n_choice))
        if last > n_choice:
            if not self._kept.size:
                self._begin_refit()
            self._solver.advance(max(first - n_choice, 1), last - n_choice)

    def release(self, done: int | None = None) -> NoisyWeights | GradientState:
        """Return what the fit has released after `done` gradients, by default after all."""
        done = self.n_steps if done is None else done
        if done < self.n_steps:
            solver = self._solver
            return GradientState(
                done,
                self._data.n_columns,
                solver.weights.copy(),
                solver.velocity.copy(),
                solver.averaged.copy(),
                self._kept,
                self._numbers.copy(),
            )
        return self._final()

    def _share(self, share: float) -> float:
        """Return the mu of a share of the budget that the count leaves."""
        counted = self._plan.n_records is None and self._mechanism.count_sensitivity > 0
        left = 1.0 - COUNT_SHARE if counted else 1.0
        return self._mechanism.mu * math.sqrt(left * share)

    def _count(self) -> float:
        """Return N: as given, or counted privately."""
        if self._plan.n_records is not None:
            return float(self._plan.n_records)
        mechanism, n_rows = self._mechanism, self._labels.size
        mu = mechanism.mu * math.sqrt(COUNT_SHARE)
        counted = noisy_sum(n_rows << 32, float(mechanism.count_sensitivity), mu, self._stream)
        return max(1.0, counted)

    def _choice_schedule(self) -> Schedule:
        mechanism, plan = self._mechanism, self._plan
        if not plan.n_refit:
            return self._schedule(1.0, plan.n_choice, KAPPA)
        share = _CHOICE_SHARE * (1.0 - _KEPT_SHARE)
        kappa = KAPPA if mechanism.name == "none" else _CHOICE_KAPPA
        return self._schedule(share, plan.n_choice, kappa)

    def _refit_schedule(self) -> Schedule:
        share = (1.0 - _CHOICE_SHARE) * (1.0 - _KEPT_SHARE)
        return self._schedule(share, self._plan.n_refit, KAPPA)

    def _schedule(self, share: float, n_steps: int, kappa: float) -> Schedule:
        sensitivity = self._mechanism.sensitivity
        return schedule_for(self._numbers[0], self._share(share), sensitivity, n_steps, kappa)

    def _run(
        self, data: UnitRows, schedule: Schedule, start: NDArray[np.float64] | None
    ) -> NoisyGradientDescent:
        return NoisyGradientDescent(
            data,
            self._loss,
            self._labels,
            schedule,
            self._stream,
            threads=self._threads,
            start=start,
        )

    def _restricted(self) -> UnitRows:
        """Return the rows of the kept columns, made unit rows again."""
        plan, data, threads = self._plan, self._data, self._threads
        rows, columns = select_columns(self._columns, self._kept, self._labels.size, threads.count)
        constant = CONSTANT if plan.fit_intercept else 0.0
        factor = row_factors(rows, constant, plan.norm_bound, threads)
        return UnitRows(rows, columns, factor, self._kept.size, data.constant)

    def _begin_refit(self) -> None:
        """Choose the columns, and start from their weights as they are on the shorter rows."""
        chosen, data = self._solver.average(), self._data
        self._kept = largest(chosen[: data.n_columns], int(self._plan.max_weights or 0))
        restricted = self._restricted()
        ratio = np.zeros(self._labels.size)
        np.divide(data.factor, restricted.factor, out=ratio, where=restricted.factor > 0)
        total = int(np.trunc(np.minimum(ratio, 1.0) * 2.0**32).astype(np.int64).sum())
        sensitivity = float(self._mechanism.rows_per_person)
        released = noisy_sum(total, sensitivity, self._share(_KEPT_SHARE), self._stream)
        kept_part = min(1.0, max(0.0, released / self._numbers[0]))
        self._numbers[1:] = kept_part, kept_part * self._solver.schedule.standard_error
        start = np.concatenate([kept_part * chosen[self._kept], chosen[data.n_columns :]])
        self._solver = self._run(restricted, self._refit_schedule(), start)

    def _go_on(self, state: GradientState) -> None:
        """Take up an interrupted fit where it was."""
        self.skipped, self._kept, self._numbers = state.done, state.columns, state.numbers.copy()
        if self._kept.size:
            self._solver = self._run(self._restricted(), self._refit_schedule(), None)
        else:
            self._solver = self._run(self._data, self._choice_schedule(), None)
        self._solver.weights[:] = state.weights
        self._solver.velocity[:] = state.velocity
        self._solver.averaged[:] = state.averaged

    def _final(self) -> NoisyWeights:
        data, solver = self._data, self._solver
        averaged, error = solver.average(), solver.schedule.standard_error
        n_columns = self._kept.size or data.n_columns
        weights, columns = averaged[:n_columns], self._kept
        constant = averaged[n_columns] if data.constant else 0.0
        weight_error = math.hypot(error, self._numbers[2])
        if self._plan.max_weights == "significant":
            columns = np.flatnonzero(np.abs(weights) > SIGNIFICANT * weight_error)
            weights = weights[columns]
        if self._original is not None:
            original = self._original[: data.n_columns].astype(np.int64)
            if self._plan.max_weights is None and not columns.size:
                weights = weights[np.argsort(original)]
            else:
                columns = original[columns]
                order = np.argsort(columns)
                weights, columns = weights[order], columns[order]
        return NoisyWeights(
            n_steps=self.n_steps,
            n_features=data.n_columns,
            columns=columns,
            weights=np.ascontiguousarray(weights),
            intercept=float(constant * data.constant),
            standard_error=weight_error,
            intercept_error=error * data.constant,
        )


@dataclass(frozen=True)
class CompletedRun:
    """A fit whose checkpoint holds all of it; see `GradientRun`."""

    n_steps: int
    finished: NoisyWeights

    history = None
    work = None

    def advance(self, first: int, last: int) -> None:
        """Do nothing: every gradient was taken before."""

    def release(self, done: int | None = None) -> NoisyWeights:  # noqa: ARG002
        """Return what the checkpoint holds."""
        return self.finished


def largest(weights: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return the places of the largest magnitudes, ascending; of equals, the first."""
    order = np.argsort(-np.abs(weights), kind="stable")
    return np.sort(order[:count]).astype(np.int64)
