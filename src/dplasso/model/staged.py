"""What a fit releases that counts the classes, draws columns and refits their weights."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.transcript import NO_VERTICES, Transcript
from dplasso.gradient_descent.release import (
    UNCHANGED,
    Calibration,
    NoisyWeights,
    same_arrays,
    slope_array,
    slope_of,
)
from dplasso.gradient_descent.state import NOWHERE, GradientState

# What a refit is at the stage 0, 1 or 2 that a file has for it.
_REFITS = (type(None), GradientState, NoisyWeights)
_INNER = ("weights", "velocity", "averaged", "numbers")


@dataclass(frozen=True)
class StagedRelease:
    """Counts, vertices and refitted weights; a `dplasso.model.release.Release`.

    `done`, `n_steps`: steps done and to be done.
    `counts`, shape (2,) or (K,): noisy numbers of the records of each class.
    `offset`, shape (1,) or (K,): where the margins start, from the counts; with several outputs
    those of the vertices alone.
    `vertices`: the columns drawn; none where gradients keep some, or all are taken.
    `weights`: the refit on the columns of the vertices, ascending, or on all or those it keeps; a
    state while it is under way, None before it and where there is none.
    `calibration`: what stretches the margins of the vertices where there is no refit.
    `start`, shape (1 + K,): slope and constants of the public start that the vertices were drawn
    from; empty without one.
    """

    kind: ClassVar[str] = "staged"
    method: ClassVar[tuple[str, str]] = VertexRelease.method
    types: ClassVar[dict[str, str]] = {
        **VertexRelease.types,
        **dict.fromkeys(("counts", "plan", "calibration", *_INNER), "<f8"),
        **dict.fromkeys(("vertex_start", "start", "prior_slope"), "<f8"),
        "energies": "<f4",
        "columns": "<i8",
    }
    optional: ClassVar[frozenset[str]] = NoisyWeights.optional | {
        "start",
        "vertex_start",
        "columns",
    }
    done: int
    n_steps: int
    counts: NDArray[np.float64]
    offset: NDArray[np.float64]
    vertices: VertexRelease
    weights: NoisyWeights | GradientState | None = None
    calibration: Calibration | None = None
    start: NDArray[np.float64] = field(default_factory=lambda: NOWHERE)

    def __post_init__(self) -> None:
        stretched = self.calibration or UNCHANGED
        slopes = [stretched.slope, stretched.prior_slope, *stretched.shift, *self.start]
        known = [*self.offset, self.vertices.l1_radius, *slopes]
        numbers = np.array([*self.counts, *known])
        n_classes = max(2, self.n_outputs)
        if self.counts.shape != (n_classes,) or not np.isfinite(numbers).all():
            raise ValueError("a number of its release is not finite")
        fitting = self.offset.shape == (self.n_outputs,) and self.vertices.late_start >= 0
        if not (fitting and 0 <= self.done <= self.n_steps):
            raise ValueError("the numbers of its release do not fit together")
        size = self.vertices.columns.size if len(self.vertices) else self.vertices.n_features
        if self.weights is not None and self.weights.n_features != size:
            raise ValueError("its weights are not those of its vertices")
        if self.done == self.n_steps and self.weights is not self.refitted:
            raise ValueError("its refit is not complete")

    def __len__(self) -> int:
        return self.done

    def complete(self, n_steps: int) -> bool:
        """Return whether every step of so many has been taken."""
        return len(self) == n_steps

    @property
    def n_outputs(self) -> int:
        """Margins of a record."""
        return self.vertices.n_outputs

    @property
    def columns(self) -> NDArray[np.int64]:
        """Columns that may have a weight, ascending, shape (k,)."""
        if len(self.vertices):
            return self.vertices.columns
        if self.weights is not None and self.weights.columns.size:
            return self.weights.columns
        return np.arange(self.vertices.n_features)

    @property
    def refitted(self) -> NoisyWeights | None:
        """The weights of unit rows of the columns, where there was a refit."""
        return None if self.weights is None else self.weights.refitted

    @property
    def n_records(self) -> float:
        """Noisy number of records."""
        return float(self.counts.sum())

    @property
    def standard_errors(self) -> NDArray[np.float64] | None:
        """Standard deviation of each refitted weight by the noise alone."""
        return None if self.refitted is None else self.refitted.standard_errors

    @property
    def scales(self) -> NDArray[np.float64] | None:
        """What each column is multiplied by before rows are scaled for the refit."""
        return None if self.refitted is None else self.refitted.scales

    @property
    def prior_slope(self) -> float:
        """What the weights of a public start are multiplied by."""
        return self._stretched.prior_slope if self.refitted is None else self.refitted.prior_slope

    @property
    def _stretched(self) -> Calibration:
        """What becomes of the margins of the vertices, and of where they started."""
        if self.calibration is None and self.start.size:
            slope, *shift = self.start.tolist()
            return Calibration(1.0, tuple(shift), slope)
        return self.calibration or UNCHANGED

    def coefficients(self) -> tuple[Any, NDArray[np.float64]]:
        """Return the linear model; of a refit, for rows of unit length in the columns drawn."""
        if self.done < self.n_steps:
            raise ValueError("a fit that is not complete has no model")
        if self.refitted is not None:
            n_features = self.vertices.n_features
            named = replace(self.refitted, n_features=n_features, columns=self.columns)
            coefficients, intercept = named.coefficients()
            return coefficients, intercept if self.n_outputs > 1 else intercept + self.offset
        coefficients, intercept = self.vertices.coefficients()
        slope, shift, *_ = self._stretched
        return coefficients * slope, (intercept + self.offset) * slope + np.array(shift)

    def agrees_with(self, other: Any) -> bool:
        """Return whether two runs can be one, as far as both have come."""
        if self.kind != other.kind or not (self.counts.any() and other.counts.any()):
            return True
        same_counts = np.array_equal(self.counts, other.counts)
        if not same_counts or not self.vertices.agrees_with(other.vertices):
            return False
        if self.done != other.done:
            return True
        mine, others = self.weights, other.weights
        same_slopes = self.calibration == other.calibration
        return (
            same_slopes
            and np.array_equal(self.start, other.start)
            and (mine is None or others is None or same_arrays(mine.arrays(), others.arrays()))
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file has to hold of it."""
        nothing, vertices = np.zeros(0), self.vertices
        inner = {} if self.weights is None else self.weights.arrays()
        # The first offset stands where that of one output always stood.
        first, *others = self.offset.tolist()
        numbers = [self.done, self.n_steps, first, vertices.l1_radius, vertices.late_start]
        numbers += [_REFITS.index(type(self.weights)), float(vertices.fit_intercept), *others]
        stretched = self.calibration
        return {
            **vertices.arrays(),
            "counts": np.array(self.counts),
            "plan": np.array(numbers),
            "calibration": np.array([stretched.slope, *stretched.shift]) if stretched else nothing,
            **{name: inner.get(name, nothing) for name in _INNER},
            **{name: inner[name] for name in self.optional if inner.get(name, nothing).size},
            **(slope_array(stretched.prior_slope) if stretched else {}),
            **({"vertex_start": self.start} if self.start.size else {}),
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], public: Mapping[str, Any]
    ) -> "StagedRelease":
        """Rebuild a release from what a file holds, and the fit's parameters and sizes."""
        done, n_steps, offset, l1_radius, late_start, stage, constant, *others = arrays[
            "plan"
        ].tolist()
        vertices = VertexRelease(
            transcript=Transcript(arrays["vertex"].astype(np.int64), arrays["sign"]),
            n_features=public["n_features"],
            l1_radius=l1_radius,
            feature_bound=float(public["feature_bound"]),
            fit_intercept=bool(constant),
            late_start=int(late_start),
            n_outputs=1 + len(others),
        )
        slope, *shift = arrays["calibration"].tolist() or [None]
        calibration = None if slope is None else Calibration(slope, tuple(shift), slope_of(arrays))
        counted = int(done), int(n_steps), arrays["counts"], np.array([offset, *others])
        start = arrays.get("vertex_start", NOWHERE)
        plain = cls(*counted, vertices, calibration=calibration, start=start)
        if stage == 0.0:
            return plain
        inner = {"columns": np.zeros(0, dtype=np.int64), **arrays}
        refit: Any = {1.0: GradientState, 2.0: NoisyWeights}[stage]
        return replace(plain, weights=refit.from_arrays(inner, {"n_features": plain.columns.size}))

    @classmethod
    def empty(cls, public: Mapping[str, Any]) -> "StagedRelease":
        """Return the release of a fit before anything is counted."""
        n_outputs = public["n_outputs"]
        sizes = public["n_features"], 0.0, float(public["feature_bound"])
        vertices = VertexRelease(NO_VERTICES, *sizes, fit_intercept=False, n_outputs=n_outputs)
        counts, offset = np.zeros(max(2, n_outputs)), np.zeros(n_outputs)
        return cls(0, public["n_steps"], counts, offset, vertices)
