"""A LASSO fit that chooses its own settings: counts, columns, and a refit of their weights."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dplasso.fit.column_plan import LassoPlan, plan_lasso
from dplasso.fit.task import Task
from dplasso.fit.vertices import round_steps, vertex_selector, vertex_steps
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.rounds import RoundsFrankWolfe
from dplasso.frank_wolfe.transcript import NO_VERTICES
from dplasso.gradient_descent.calibration import calibrate_margins
from dplasso.gradient_descent.release import Calibration, NoisyWeights
from dplasso.gradient_descent.run import GradientRun, RunPlan, Stage, noisy_counts
from dplasso.gradient_descent.schedule import MOMENTUM
from dplasso.gradient_descent.slopes import LinearModel
from dplasso.gradient_descent.state import GradientState
from dplasso.model.staged import StagedRelease
from dplasso.privacy.mechanisms import StagedSteps
from dplasso.privacy.randomness import RandomStream
from dplasso.runtime.threads import Threads

if TYPE_CHECKING:
    from dplasso.fit.lasso import Lasso


class StagedLasso:
    """Counts, vertices, gradients on their columns; a `dplasso.runtime.chunks.Solver`.

    `records`: of `dplasso.fit.records`, with targets.
    `stream`: random words of all draws.
    `prefix`: what was released already, not to be drawn again.

    `n_steps`: the most vertices and gradients. Steps beyond the vertices that were planned do
    nothing.
    """

    history = None
    work = None

    def __init__(
        self,
        method: "Lasso",
        task: Task,
        mechanism: StagedSteps,
        records: Any,
        stream: RandomStream,
        threads: Threads,
        *,
        prefix: StagedRelease | None = None,
    ) -> None:
        self.n_steps = mechanism.n_iter
        self._method, self._task, self._mechanism = method, task, mechanism
        self._records, self._stream, self._threads = records, stream, threads
        # What was counted is kept before the first vertex is drawn.
        begun = prefix is not None and (len(prefix) > 0 or bool(prefix.counts.any()))
        prefix = prefix if begun else None
        self._prefix = prefix
        # Once the refit has begun, the vertices are only to be named.
        refitting = prefix is not None and prefix.weights is not None
        self._drawn = prefix.vertices.transcript if prefix is not None and refitting else None
        # A damaged matrix is refused before anything is paid for or drawn.
        n_vertices = mechanism.n_vertices if self._drawn is None else 0
        self._laid_out = records.laid_out(method, n_vertices, self._has_constant_vertex)
        self._refit: GradientRun | None = None
        self._finished = None if prefix is None else prefix.refitted
        self._calibration = None if prefix is None else prefix.calibration
        self._columns: Any = None

    def begin(self) -> None:
        """Take step 0: count the classes, unless an interrupted fit has counted them, and plan."""
        self._counts = self._count() if self._prefix is None else self._prefix.counts
        self._plan = self._planned()
        bound = self._mechanism.residual_bound
        self._loss = self._task.vertex_loss(bound, self._plan.offset)

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""
        if first == 1 and self._drawn is None and self._plan.n_vertices:
            self._columns = self._vertex_run()
        self._advance(first, last)
        if last == self.n_steps and self._calibration is None and self._plan.calibration_share:
            self._calibration = self._calibrated()

    def _advance(self, first: int, last: int) -> None:
        n_vertices, most = self._plan.n_vertices, self._mechanism.n_vertices
        if self._columns is not None and first <= min(last, n_vertices):
            self._columns.advance(first, min(last, n_vertices))
        first, last = first - most, last - most
        if last < 1 or not self._plan.refit_share or self._finished is not None:
            return
        if self._refit is None:
            self._refit = self._gradient_run()
        if self._refit is not None:
            self._refit.advance(max(1, first), last)

    def release(self, done: int | None = None) -> StagedRelease:
        """Return what the first `done` steps have released, by default all of them."""
        done = self.n_steps if done is None else done
        weights: NoisyWeights | GradientState | None = self._finished
        gradients = done - self._mechanism.n_vertices
        if self._refit is not None and gradients > 0:
            weights = self._refit.release(gradients)
        return StagedRelease(
            done=done,
            n_steps=self.n_steps,
            counts=self._counts,
            offset=np.atleast_1d(np.asarray(self._plan.offset)),
            vertices=self._vertices(min(done, self._plan.n_vertices)),
            weights=weights,
            calibration=self._calibration if done == self.n_steps else None,
        )

    def _vertices(self, done: int) -> VertexRelease:
        if self._columns is not None:
            released: VertexRelease = self._columns.release(done)
            return released
        return VertexRelease(
            NO_VERTICES if self._drawn is None else self._drawn,
            int(self._records.shape[1]),
            self._plan.l1_radius,
            self._method.feature_bound,
            fit_intercept=self._has_constant_vertex,
            late_start=self._plan.late_start,
            n_outputs=self._task.n_outputs,
        )

    @property
    def _has_constant_vertex(self) -> bool:
        """Whether the constant column is drawn like the others; otherwise margins start offset."""
        return self._method.fit_intercept and self._method.l1_radius is not None

    def _count(self) -> NDArray[np.float64]:
        """Count the records of all classes, privately; public are none, or their sum.

        A record of a regression counts for both ends of the interval, in the parts that make its
        target their mean: parts of one record, as one class is. One with a weight counts for that
        part of a record.
        """
        mechanism, public = self._mechanism, self._method.n_records
        loss = self._task.vertex_loss(mechanism.residual_bound)
        exact, part_bits = self._records.counts(loss)
        n_classes = len(exact)
        if not mechanism.counted:
            # Nothing but N is used then, and in equal parts.
            total = float(self._records.shape[0] if public is None else public)
            return np.full(n_classes, total / n_classes)
        sensitivity, mu = mechanism.count_sensitivity, mechanism.count_mu
        noisy = noisy_counts(exact, sensitivity, mu, self._stream, part_bits)
        if public is not None and not self._records.weighted:
            # The sum is known: what the counts are beyond it, they are in equal parts.
            noisy = np.maximum(1.0, noisy - (noisy.sum() - public) / n_classes)
        return noisy

    def _planned(self) -> LassoPlan:
        method, mechanism, task = self._method, self._mechanism, self._task
        offset: Any = 0.0 if task.n_outputs == 1 else np.zeros(task.n_outputs)
        if method.fit_intercept and not self._has_constant_vertex:
            noise = mechanism.count_sensitivity / mechanism.count_mu if mechanism.counted else 0.0
            deviation = 0.0 if math.isinf(mechanism.rho) else noise
            offset = task.offset(self._counts, deviation, mechanism.residual_bound)
        return plan_lasso(
            mechanism,
            n_iter=method.n_iter,
            l1_radius=method.l1_radius,
            refit=method.refit,
            n_records=float(self._counts.sum()),
            n_features=int(self._records.shape[1]),
            offset=offset,
            step=task.column_step,
            calibration=task.calibration,
        )

    def _vertex_run(self) -> Any:
        plan, method, records = self._plan, self._method, self._laid_out
        share = 1.0 - plan.refit_share - plan.calibration_share
        mechanism = self._mechanism.vertices(plan.n_vertices, share)
        numbers: dict[str, Any] = {
            "n_records": float(self._counts.sum()),
            "n_features": int(self._records.shape[1]),
        }
        prefix = None if self._prefix is None else self._prefix.vertices.transcript
        if method.l1_radius is None:
            rounds = round_steps(method, plan, self._loss, **numbers)
            rows = records.rows(rounds, self._threads)
            selector = vertex_selector(method.selector, mechanism, rounds)
            return RoundsFrankWolfe(rounds, rows, selector, self._stream, self._vertices(0), prefix)
        steps = vertex_steps(
            method,
            mechanism,
            self._loss,
            radius=plan.l1_radius,
            n_steps=plan.n_vertices,
            intercept=self._has_constant_vertex,
            **numbers,
        )
        return records.vertices(
            method, steps, mechanism, self._stream, self._threads, prefix=prefix
        )

    def _gradient_run(self) -> GradientRun | None:
        """Begin the refit; with the constant alone drawn there is nothing to refit."""
        kept = self.release(self._mechanism.n_vertices).columns
        if not kept.size:
            return None
        if self._columns is not None:
            self._drawn, self._columns = self._columns.transcript(), None
        steps, kappa = self._mechanism.n_gradients, self._task.refit_kappa
        total = float(self._counts.sum())
        plan = RunPlan(
            stages=(Stage(steps, 1.0, kappa, MOMENTUM, int(kept.size)),),
            significant=False,
            fit_intercept=self._method.fit_intercept,
            norm_bound=None,
            n_records=total if self._records.weighted else max(1, round(total)),
            calibration=self._plan.refit_calibration,
        )
        state = None if self._prefix is None else self._prefix.weights
        mechanism = self._mechanism.gradients(self._plan.refit_share)
        run = GradientRun(
            plan,
            mechanism,
            self._rows(kept, self._task.refit_loss(mechanism.residual_bound, self._loss)),
            self._stream,
            threads=self._threads,
            prefix=state if isinstance(state, GradientState) else None,
        )
        run.begin()
        return run

    def _calibrated(self) -> Calibration | None:
        """Set the margins of the vertices right, where there is no refit that does."""
        kept, mechanism = self.release(self._mechanism.n_vertices).columns, self._mechanism
        if math.isinf(mechanism.rho):
            return None
        coefficients, intercept = self._vertices(self._plan.n_vertices).coefficients()
        loss = self._loss
        if self._task.n_outputs > 1:
            # A loss of one margin adds its offset itself.
            loss = self._task.vertex_loss(mechanism.residual_bound)
            intercept = intercept + self._plan.offset
        every = np.zeros(0, dtype=np.int64)
        weights = coefficients[:, kept].toarray().T
        model = LinearModel(weights, intercept, every, 0.0, None, self._method.feature_bound)
        spent = mechanism.gradients(self._plan.calibration_share)
        rows = self._rows(kept, loss)
        return calibrate_margins(
            rows.margins(model),
            rows.loss,
            self._stream,
            n_records=max(1.0, float(self._counts.sum())),
            mu=spent.mu,
            sensitivity=spent.sensitivity,
            fit_intercept=self._method.fit_intercept,
        )

    def _rows(self, kept: NDArray[np.int64], loss: Any) -> Any:
        """Return the records in the columns that are kept; the layout for vertices is let go."""
        records, self._laid_out = self._laid_out or self._records, None
        return records.gradients(loss, self._threads, kept)
