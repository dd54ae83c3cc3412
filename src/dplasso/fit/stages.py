"""A LASSO fit that chooses its own settings: counts, columns, and a refit of their weights."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dplasso.fit.drawing import Drawing, vertex_selector
from dplasso.fit.task import Task
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.frank_wolfe.rounds import SPREAD, RoundsFrankWolfe
from dplasso.frank_wolfe.transcript import NO_VERTICES
from dplasso.gradient_descent.blend import find_start, part_taken, weighed
from dplasso.gradient_descent.calibration import calibrate_margins
from dplasso.gradient_descent.counts import noisy_counts
from dplasso.gradient_descent.plan import CONSTANT, LEARNT, LEARNT_OF_FEW, RunPlan
from dplasso.gradient_descent.release import Calibration, NoisyWeights
from dplasso.gradient_descent.run import GradientRun
from dplasso.gradient_descent.slopes import LinearModel
from dplasso.gradient_descent.state import NOWHERE, GradientState
from dplasso.matrix.starting import StartingModel
from dplasso.matrix.unit_rows import Scaling
from dplasso.model.staged import StagedRelease
from dplasso.privacy.mechanisms import StagedSteps
from dplasso.privacy.parameters import share_bits

if TYPE_CHECKING:
    from dplasso.fit.lasso import Lasso

_NONE = np.zeros(0, dtype=np.int64)


class StagedLasso:
    """Counts, vertices, gradients on their columns; a `dplasso.runtime.chunks.Solver`.

    `n_steps` is the most vertices and gradients. Steps beyond the planned vertices do nothing.
    """

    history = work = None

    def __init__(
        self, method: "Lasso", task: Task, mechanism: StagedSteps, records: Any, drawing: Drawing
    ) -> None:
        self.n_steps = mechanism.n_iter
        self._method, self._task, self._mechanism = method, task, mechanism
        self._records, self._n_features = records, int(records.shape[1])
        prefix: StagedRelease | None = drawing.prefix
        # Counts are kept before the first vertex is drawn.
        if prefix is not None and not len(prefix) and not prefix.counts.any():
            prefix = None
        self._drawing, self._prefix = drawing, prefix
        # Once the refit has begun, the vertices are not drawn again, only released.
        refitting = prefix is not None and prefix.weights is not None
        self._drawn = prefix.vertices.transcript if prefix is not None and refitting else None
        # A damaged matrix is refused before anything is paid for or drawn.
        n_vertices = mechanism.n_vertices if self._drawn is None else 0
        self._laid_out = records.laid_out(method, n_vertices)
        self._refit: GradientRun | None = None
        self._finished = None if prefix is None else prefix.refitted
        self._calibration = None if prefix is None else prefix.calibration
        self._prior = method.starting_model
        # Slope and constants of the prior, for vertices and refit, and what part of it they are.
        self._start, self._part = NOWHERE if prefix is None else prefix.start, 1.0
        self._columns: Any = None

    def begin(self) -> None:
        """Take step 0: count the classes, unless an interrupted fit has counted them, and plan."""
        self._counts = self._count() if self._prefix is None else self._prefix.counts
        self._total = float(self._counts.sum())
        self._plan = self._method.plan(self._task, self._mechanism, self._total, self._n_features)
        self._offset = self._starting_offset()
        self._loss = self._method.loss(self._task, self._offset)
        if self._prior is not None and self._plan.n_vertices:
            known = self._known(self._plan.start_share)
            self._part = part_taken(known["n_records"], known["mu"], LEARNT_OF_FEW)
            if not self._start.size:
                self._start = self._part * self._found_start(self._prior, known)

    @property
    def counted(self) -> float:
        """The number of records, as given or as counted by step 0."""
        return self._total

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""
        plan, before = self._plan, self._before_gradients
        if first == 1 and self._drawn is None and plan.n_vertices:
            self._columns = self._vertex_run()
        drawn = min(last, plan.n_vertices)
        if self._columns is not None and first <= drawn:
            self._columns.advance(first, drawn)
        if last > before and plan.refit_share and self._finished is None:
            if self._refit is None:
                self._refit = self._gradient_run()
            if self._refit is not None:
                # It may need fewer gradients than it may take.
                reached = min(last - before, self._refit.n_steps)
                self._refit.advance(max(1, first - before), reached)
        if last == self.n_steps and self._calibration is None and plan.calibration_share:
            self._calibration = self._calibrated()

    def release(self, done: int | None = None) -> StagedRelease:
        """Return what the first `done` steps have released, by default all of them."""
        done = self.n_steps if done is None else done
        weights: NoisyWeights | GradientState | None = self._finished
        gradients = done - self._before_gradients
        if self._refit is not None and gradients > 0:
            weights = self._refit.release(min(gradients, self._refit.n_steps))
        return StagedRelease(
            done=done,
            n_steps=self.n_steps,
            counts=self._counts,
            offset=np.atleast_1d(np.asarray(self._offset)),
            vertices=self._vertices(min(done, self._plan.n_vertices)),
            weights=weights,
            calibration=self._calibration if done == self.n_steps else None,
            start=self._start,
        )

    @property
    def _before_gradients(self) -> int:
        """Steps before the first gradient."""
        most, plan = self._mechanism.n_vertices, self._plan
        return most if plan.n_kept else most + self._mechanism.n_screening

    def _vertices(self, done: int) -> VertexRelease:
        if self._columns is not None:
            released: VertexRelease = self._columns.release(done)
            return released
        return VertexRelease(
            NO_VERTICES if self._drawn is None else self._drawn,
            self._n_features,
            self._plan.l1_radius,
            self._method.feature_bound,
            fit_intercept=self._method.draws_constant,
            late_start=self._plan.late_start,
            n_outputs=self._task.n_outputs,
        )

    def _count(self) -> NDArray[np.float64]:
        """Return noisy counts of the classes, or equal counts where only their sum is needed.

        In a regression a record counts partly for each end of the interval, so that its target is
        their weighted mean. A record with a weight counts for that part of a record.
        """
        mechanism, public = self._mechanism, self._method.n_records
        exact, part_bits = self._records.counts(self._method.loss(self._task))
        n_classes = len(exact)
        if not mechanism.counted:
            # Only N is needed then.
            total = float(self._records.shape[0] if public is None else public)
            return np.full(n_classes, total / n_classes)
        sensitivity, mu = mechanism.count_sensitivity, mechanism.count_mu
        noisy = noisy_counts(exact, sensitivity, mu, self._drawing.stream, part_bits)
        if public is not None and not self._records.weighted:
            # The sum is known: an excess over it is taken from all counts alike.
            noisy = np.maximum(1.0, noisy - (noisy.sum() - public) / n_classes)
        return noisy

    def _starting_offset(self) -> Any:
        """Return where every margin starts: at the balance of the classes, as counted."""
        method, mechanism, task = self._method, self._mechanism, self._task
        # A prior has intercepts of its own.
        if not method.fit_intercept or method.draws_constant or self._prior is not None:
            return 0.0 if task.n_outputs == 1 else np.zeros(task.n_outputs)
        noisy = mechanism.counted and not math.isinf(mechanism.rho)
        deviation = mechanism.count_sensitivity / mechanism.count_mu if noisy else 0.0
        return method.loss(task).starting_offset(self._counts, deviation)

    def _vertex_run(self) -> Any:
        plan, method, records = self._plan, self._method, self._laid_out
        share = 1.0 - plan.refit_share - plan.calibration_share - plan.start_share
        mechanism = self._mechanism.vertices(plan.n_vertices, share)
        prefix = None if self._prefix is None else self._prefix.vertices.transcript
        if method.l1_radius is None:
            rounds = RoundSteps(
                loss=self._loss,
                bound=method.feature_bound,
                n_columns=self._n_features,
                n_steps=plan.n_vertices,
                # What each vertex weighs after a late start, but for one part in t0 / T.
                vertex_weight=2.0 * plan.l1_radius / (plan.n_vertices + plan.late_start),
                share_bits=share_bits(self._total),
                start=self._started(),
            )
            rows = records.rows(rounds, self._drawing.threads)
            selector = vertex_selector(method.selector, mechanism, rounds, SPREAD)
            stream, empty = self._drawing.stream, self._vertices(0)
            return RoundsFrankWolfe(rounds, rows, selector, stream, empty, prefix)
        known = plan.n_vertices, self._total, self._started()
        steps = method.steps(mechanism, self._loss, self._n_features, *known)
        return records.vertices(method, steps, mechanism, replace(self._drawing, prefix=prefix))

    def _gradient_run(self) -> GradientRun | None:
        """Begin the refit; None if only the constant was drawn."""
        kept = self.release(self._mechanism.n_vertices).columns
        if not kept.size:
            return None
        if self._columns is not None:
            self._drawn, self._columns = self._columns.transcript(), None
        mechanism = self._mechanism.gradients(self._plan.refit_share)
        loss = self._task.refit_loss(mechanism.residual_bound, self._loss)
        known = self._mechanism, self._task.refit_kappa, int(kept.size)
        told = loss.curvature * self._total * mechanism.mu / mechanism.sensitivity
        plan = RunPlan(
            stages=self._plan.stages(*known, told),
            significant=False,
            fit_intercept=self._method.fit_intercept,
            norm_bound=None,
            n_records=self._total if self._records.weighted else max(1, round(self._total)),
            calibration=self._plan.refit_calibration,
            start=self._plan.refit_start,
            learnt=LEARNT_OF_FEW if kept.size < self._n_features or self._plan.n_kept else LEARNT,
        )
        state = None if self._prefix is None else self._prefix.weights
        run = GradientRun(
            plan,
            mechanism,
            self._rows(kept, loss, self._prior),
            self._drawing.stream,
            threads=self._drawing.threads,
            prefix=state if isinstance(state, GradientState) else None,
            started=(self._start, self._part) if self._start.size else None,
        )
        run.begin()
        return run

    def _calibrated(self) -> Calibration | None:
        """Calibrate the margins of the vertices; a refit does so by itself."""
        kept = self.release(self._mechanism.n_vertices).columns
        start = self._started()
        if math.isinf(self._mechanism.rho) and start is None:
            return None
        coefficients, intercept = self._vertices(self._plan.n_vertices).coefficients()
        weights = coefficients[:, kept].toarray().T
        scaling = Scaling(_NONE, 0.0, None)
        model = LinearModel(weights, intercept, scaling, self._method.feature_bound)
        rows = self._rows(kept, self._loss, self._prior)
        known = self._known(self._plan.calibration_share)
        if start is None:
            return calibrate_margins(rows.margins(model), rows.loss, self._drawing.stream, **known)
        return weighed(rows, model, self._drawing.stream, self._start, self._part, **known)

    def _found_start(self, prior: StartingModel, known: dict[str, Any]) -> NDArray[np.float64]:
        """Return the slope and the constants of the prior."""
        rows = self._laid_out or self._records
        records = rows.gradients(self._loss, self._drawing.threads, _NONE, prior)
        constant = self._unit_constant
        bound = self._method.feature_bound if constant is None else None
        scaling = Scaling(_NONE, constant or 0.0, None)
        return find_start(records, scaling, bound, self._drawing.stream, **known)

    def _known(self, share: float) -> dict[str, Any]:
        """Return what finding slopes needs to know besides the margins."""
        spent = self._mechanism.gradients(share)
        return {
            "n_records": max(1.0, self._total),
            "mu": spent.mu,
            "sensitivity": spent.sensitivity,
            "fit_intercept": self._method.fit_intercept,
        }

    def _started(self) -> StartingModel | None:
        """Return the public model that the vertices' margins start from."""
        if self._prior is None:
            return None
        started = self._prior.stretched(self._start[0], self._start[1:])
        return replace(started, constant=self._unit_constant)

    @property
    def _unit_constant(self) -> float | None:
        """The constant entry of the unit rows that a public start is of; None of clipped rows."""
        if not self._method.takes_unit_rows:
            return None
        return CONSTANT if self._method.fit_intercept else 0.0

    def _rows(self, kept: NDArray[np.int64], loss: Any, prior: StartingModel | None = None) -> Any:
        """Return the records in the kept columns; the layout for vertices is freed."""
        records, self._laid_out = self._laid_out or self._records, None
        # All columns of a store are in its own order already.
        chosen = None if kept.size == self._n_features else kept
        return records.gradients(loss, self._drawing.threads, chosen, prior)
