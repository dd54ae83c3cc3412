"""What Frank-Wolfe releases: the vertices, and the public numbers that turn them into weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.frank_wolfe.transcript import Transcript, weights


@dataclass(frozen=True)
class VertexRelease:
    """The vertices of a fit; a `dplasso.model.release.Release`.

    `n_features`: D; the coordinate D is the intercept.
    `feature_bound`: B, the value of the intercept's constant column.
    `fit_intercept`: whether D is a coordinate.
    `late_start`: t0 of the step sizes.
    `n_outputs`: margins of a record, K. Coordinate ``k (D + 1) + j``, without an intercept
    ``k D + j``, is that of output k and column j.
    """

    kind: ClassVar[str] = "vertices"
    method: ClassVar[tuple[str, str]] = ("LASSO by Frank-Wolfe", "LASSO by Frank-Wolfe")
    types: ClassVar[dict[str, str]] = {"vertex": "<i8", "sign": "|i1"}
    optional: ClassVar[frozenset[str]] = frozenset()
    transcript: Transcript
    n_features: int
    l1_radius: float
    feature_bound: float
    fit_intercept: bool = True
    late_start: int = 0
    n_outputs: int = 1

    refitted = n_records = standard_errors = scales = None

    def __post_init__(self) -> None:
        vertex = self.transcript.vertex
        if vertex.size and (vertex.min() < 0 or vertex.max() >= self.n_outputs * self.per_output):
            raise ValueError(f"a vertex lies outside the {self.n_features} columns")
        if not np.all(np.abs(self.transcript.sign) == 1):
            raise ValueError("a sign is neither +1 nor -1")

    def __len__(self) -> int:
        return len(self.transcript)

    def complete(self, n_steps: int) -> bool:
        """Return whether every vertex of a fit of so many steps has been drawn."""
        return len(self) == n_steps

    @property
    def vertices(self) -> "VertexRelease":
        """The vertices: all of the release."""
        return self

    @property
    def per_output(self) -> int:
        """Coordinates of one output."""
        return self.n_features + int(self.fit_intercept)

    @property
    def columns(self) -> NDArray[np.int64]:
        """Columns drawn for any output, ascending, shape (k,)."""
        column = self.transcript.vertex % self.per_output
        return np.unique(column[column < self.n_features])

    def coefficients(self) -> tuple[csr_array, NDArray[np.float64]]:
        """Return the weights of the columns, shape (K, D), and the constant terms, shape (K,)."""
        coordinates, values = weights(self.transcript, float(self.l1_radius), self.late_start)
        output, column = np.divmod(coordinates, self.per_output)
        inside = column < self.n_features
        columns = column[inside].astype(np.int32 if self.n_features < 2**31 else np.int64)
        ends = np.searchsorted(output[inside], np.arange(self.n_outputs + 1))
        shape = (self.n_outputs, self.n_features)
        coefficients = csr_array((values[inside], columns, ends.astype(columns.dtype)), shape=shape)
        constant = np.zeros(self.n_outputs)
        np.add.at(constant, output[~inside], values[~inside])
        return coefficients, constant * float(self.feature_bound)

    def agrees_with(self, other: Any) -> bool:
        """Return whether two runs drew the same vertices as far as both have come."""
        common = min(len(self), len(other))
        return bool(self.transcript.first(common) == other.transcript.first(common))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file has to hold of it."""
        return {
            "vertex": self.transcript.vertex.astype("<i8", copy=False),
            "sign": self.transcript.sign.astype("|i1", copy=False),
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], public: Mapping[str, Any]
    ) -> "VertexRelease":
        """Rebuild a release from what a file holds, and the fit's parameters and sizes."""
        return cls(
            transcript=Transcript(arrays["vertex"].astype(np.int64, copy=False), arrays["sign"]),
            n_features=public["n_features"],
            # What "auto" stands for with the paper's mechanism.
            l1_radius=10.0 if public["l1_radius"] == "auto" else float(public["l1_radius"]),
            feature_bound=float(public["feature_bound"]),
            fit_intercept=bool(public["fit_intercept"]),
            n_outputs=public["n_outputs"],
        )

    @classmethod
    def empty(cls, public: Mapping[str, Any]) -> "VertexRelease":
        """Return the release of a fit before its first step."""
        nothing = {name: np.zeros(0, dtype) for name, dtype in cls.types.items()}
        return cls.from_arrays(nothing, public)
