"""A LASSO fit that chooses its own settings: counts, columns, and a refit of their weights."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cluster.frank_wolfe import PartitionedFrankWolfe
from dplasso.cluster.gradients import PartitionedRecords
from dplasso.cluster.partitions import Partitions
from dplasso.data.store import Store
from dplasso.fit.lasso import (
    drift_tolerance,
    lasso_design,
    lasso_loss,
    lasso_selector,
    weights_of_classes,
)
from dplasso.fit.lasso_plan import (
    REFIT_KAPPA,
    REGRESSION_REFIT_KAPPA,
    REGRESSION_STEP,
    STEP,
    LassoPlan,
    plan_lasso,
)
from dplasso.fit.partitioned import check_partitions, partitioned_solver
from dplasso.fit.settings import LassoSettings
from dplasso.frank_wolfe.problem import Problem, build_problem
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.gradient_descent.calibration import calibrate_margins
from dplasso.gradient_descent.counts import noisy_counts
from dplasso.gradient_descent.plan import RunPlan, Stage
from dplasso.gradient_descent.records import Records, records_of
from dplasso.gradient_descent.release import Calibration, NoisyWeights
from dplasso.gradient_descent.run import GradientRun
from dplasso.gradient_descent.schedule import MOMENTUM
from dplasso.gradient_descent.slopes import LinearModel
from dplasso.gradient_descent.state import GradientState
from dplasso.losses.multinomial import Multinomial
from dplasso.losses.targets import Targets, count_classes
from dplasso.matrix.compressed import compress
from dplasso.matrix.design import Design
from dplasso.model.staged import NO_VERTICES, StagedRelease
from dplasso.privacy.mechanisms import StagedSteps
from dplasso.privacy.parameters import share_bits
from dplasso.privacy.randomness import RandomStream
from dplasso.runtime.threads import Threads


class LassoRun:
    """Counts, vertices, gradients on their columns; a `dplasso.runtime.chunks.Solver`.

    `settings`: valid settings.
    `mechanism`: the budget.
    `stream`: random words of all draws.
    `threads`: of the run.
    `prefix`: what was released already, not to be drawn again.

    `n_steps`: the most vertices and gradients. Steps beyond the vertices that were planned do
    nothing.
    """

    history = None
    work = None

    def __init__(
        self,
        settings: LassoSettings,
        mechanism: StagedSteps,
        X: Any,
        targets: Targets,
        stream: RandomStream,
        *,
        threads: Threads,
        prefix: StagedRelease | None = None,
    ) -> None:
        self.n_steps = mechanism.n_iter
        self._settings, self._mechanism = settings, mechanism
        self._X, self._targets = X, targets
        self._stream, self._threads = stream, threads
        # What was counted is kept before the first vertex is drawn.
        begun = prefix is not None and (len(prefix) > 0 or bool(prefix.counts.any()))
        prefix = prefix if begun else None
        self._prefix = prefix
        # Once the refit has begun, the vertices are only to be named.
        refitting = prefix is not None and prefix.weights is not None
        self._drawn = prefix.vertices.transcript if prefix is not None and refitting else None
        # A damaged matrix is refused before anything is paid for or drawn.
        self._design = self._laid_out()
        self._refit: GradientRun | None = None
        self._finished = None if prefix is None else prefix.refitted
        self._calibration = None if prefix is None else prefix.calibration
        self._columns: FrankWolfe | PartitionedFrankWolfe | None = None

    def begin(self) -> None:
        """Take step 0: count the classes, unless an interrupted fit has counted them, and plan."""
        self._counts = self._count() if self._prefix is None else self._prefix.counts
        self._plan = self._planned()
        self._loss = lasso_loss(self._settings, self._plan.offset)

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""
        if first == 1 and self._drawn is None and self._plan.n_vertices:
            self._columns = self._frank_wolfe()
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
            return self._columns.release(done)
        return VertexRelease(
            NO_VERTICES if self._drawn is None else self._drawn,
            int(self._X.shape[1]),
            self._plan.l1_radius,
            self._settings.feature_bound,
            fit_intercept=self._has_constant_vertex,
            late_start=self._plan.late_start,
            n_outputs=self._mechanism.n_outputs,
        )

    @property
    def _has_constant_vertex(self) -> bool:
        """Whether the constant column is drawn like the others; otherwise margins start offset."""
        return self._settings.fit_intercept and self._settings.l1_radius is not None

    def _count(self) -> NDArray[np.float64]:
        """Count the records of all classes, privately; public are none, or their sum.

        A record of a regression counts for both ends of the interval, in the parts that make its
        target their mean: parts of one record, as one class is. One with a weight counts for that
        part of a record.
        """
        exact, part_bits = self._exact_counts()
        mechanism, public, n_classes = self._mechanism, self._settings.n_records, len(exact)
        if not mechanism.counted:
            # Nothing but N is used then, and in equal parts.
            total = float(self._X.shape[0] if public is None else public)
            return np.full(n_classes, total / n_classes)
        sensitivity, mu = mechanism.count_sensitivity, mechanism.count_mu
        noisy = noisy_counts(exact, sensitivity, mu, self._stream, part_bits)
        if public is not None and not self._settings.weighted:
            # The sum is known: what the counts are beyond it, they are in equal parts.
            noisy = np.maximum(1.0, noisy - (noisy.sum() - public) / n_classes)
        return noisy

    def _exact_counts(self) -> tuple[list[int], int]:
        """Count the records of the classes in parts of a record; return them and the parts."""
        if not isinstance(self._X, Partitions):
            return count_classes(self._plain_loss(), self._targets)
        found = self._X.call("count", self._plain_loss())
        counts = [counts for counts, _ in found]
        return [sum(one) for one in zip(*counts, strict=True)], found[0][1]

    def _plain_loss(self) -> Any:
        """Return the loss of margins that start at zero."""
        n_outputs = self._mechanism.n_outputs
        return lasso_loss(self._settings, 0.0 if n_outputs == 1 else np.zeros(n_outputs))

    def _planned(self) -> LassoPlan:
        settings, mechanism = self._settings, self._mechanism
        offset: Any = 0.0 if mechanism.n_outputs == 1 else np.zeros(mechanism.n_outputs)
        if settings.fit_intercept and not self._has_constant_vertex:
            noise = mechanism.count_sensitivity / mechanism.count_mu if mechanism.counted else 0.0
            deviation = 0.0 if math.isinf(mechanism.rho) else noise
            offset = self._plain_loss().starting_offset(self._counts, deviation)
        return plan_lasso(
            mechanism,
            n_iter=settings.n_iter,
            l1_radius=settings.l1_radius,
            refit=settings.refit,
            n_records=float(self._counts.sum()),
            n_features=int(self._X.shape[1]),
            offset=offset,
            step=STEP if settings.target_bounds is None else REGRESSION_STEP,
            calibrated=settings.target_bounds is None,
        )

    def _laid_out(self) -> Design | None:
        """Lay the records out for vertices, if any are to be drawn here."""
        if isinstance(self._X, Partitions):
            n_records = self._settings.n_records or self._X.shape[0]
            if self._mechanism.n_vertices:
                check_partitions(self._settings, self._X, n_records)
            return None
        n_vertices = self._mechanism.n_vertices
        if self._drawn is not None or not n_vertices:
            if not isinstance(self._X, Store):
                compress(self._X)
            return None
        constant = self._has_constant_vertex
        return lasso_design(self._settings, self._X, n_vertices, intercept=constant)

    def _frank_wolfe(self) -> FrankWolfe | PartitionedFrankWolfe:
        settings, plan = self._settings, self._plan
        step = self._mechanism.vertices(
            plan.n_vertices, 1.0 - plan.refit_share - plan.calibration_share
        )
        prefix = None if self._prefix is None else self._prefix.vertices.transcript
        n_records, n_features = float(self._counts.sum()), int(self._X.shape[1])
        distinct, drift_tol = settings.l1_radius is None, settings.drift_tol
        if not distinct:
            drift_tol = drift_tolerance(settings, step, n_records, n_features)

        def selector(problem: Problem) -> Any:
            return lasso_selector(settings, step, problem)

        if isinstance(self._X, Partitions):
            return partitioned_solver(
                settings,
                self._X,
                self._loss,
                selector,
                self._stream,
                radius=plan.l1_radius,
                n_steps=plan.n_vertices,
                intercept=self._has_constant_vertex,
                late_start=plan.late_start,
                distinct=distinct,
                drift_tol=drift_tol,
                n_records=n_records,
                prefix=prefix,
            )
        assert self._design is not None
        problem = build_problem(
            self._design,
            self._targets.labels,
            weights=self._targets.weights,
            radius=plan.l1_radius,
            n_steps=plan.n_vertices,
            loss=self._loss,
            late_start=plan.late_start,
            distinct=distinct,
            share_bits=share_bits(n_records),
        )
        return FrankWolfe(
            problem,
            selector(problem),
            self._stream,
            solver=settings.solver,
            drift_tol=drift_tol,
            threads=self._threads,
            prefix=prefix,
        )

    def _gradient_run(self) -> GradientRun | None:
        """Begin the refit; with the constant alone drawn there is nothing to refit."""
        kept = self.release(self._mechanism.n_vertices).columns
        if not kept.size:
            return None
        if self._columns is not None:
            self._drawn, self._columns = self._columns.transcript(), None
        regression = self._settings.target_bounds is not None
        kappa = REGRESSION_REFIT_KAPPA if regression else REFIT_KAPPA
        total = float(self._counts.sum())
        plan = RunPlan(
            stages=(Stage(self._mechanism.n_gradients, 1.0, kappa, MOMENTUM, int(kept.size)),),
            significant=False,
            fit_intercept=self._settings.fit_intercept,
            norm_bound=None,
            n_records=total if self._settings.weighted else max(1, round(total)),
            calibration=self._plan.refit_calibration,
        )
        state = None if self._prefix is None else self._prefix.weights
        mechanism = self._mechanism.gradients(self._plan.refit_share)
        loss = self._loss
        if self._mechanism.n_outputs > 1:
            # Measured better without the balance of the classes, and bounded in L2.
            weights = weights_of_classes(self._settings)
            loss = Multinomial(self._mechanism.n_outputs, mechanism.residual_bound, weights)
        run = GradientRun(
            plan,
            mechanism,
            self._records(kept, loss),
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
        every = np.zeros(0, dtype=np.int64)
        weights = coefficients[:, kept].toarray().T
        bound = self._settings.feature_bound
        model = LinearModel(weights, intercept, every, 0.0, None, bound)
        spent = mechanism.gradients(self._plan.calibration_share)
        return calibrate_margins(
            self._records(kept, self._loss).margins(model),
            self._loss,
            self._stream,
            n_records=max(1.0, float(self._counts.sum())),
            mu=spent.mu,
            sensitivity=spent.sensitivity,
            fit_intercept=self._settings.fit_intercept,
        )

    def _records(self, kept: NDArray[np.int64], loss: Any) -> Records | PartitionedRecords:
        """Return the records in the columns that are kept."""
        if isinstance(self._X, Partitions):
            whole = kept.size == self._X.shape[1]
            return PartitionedRecords(self._X, loss, None if whole else kept)
        design, self._design = self._design, None
        columns = None
        if design is not None and design.has_columns and not design.columns_internal:
            columns = design.columns
        return records_of(self._X, loss, self._targets, self._threads, kept, columns)
