"""The training problem: a design, a loss, targets, and fixed-point units."""

from typing import Any, NamedTuple

import numpy as np

from dplasso.data.store import Store
from dplasso.frank_wolfe import transcript
from dplasso.losses.targets import Targets
from dplasso.matrix.compressed import Make, compress
from dplasso.matrix.orientations import Design, check_row_count, transpose
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import Threads

# |q x S| <= 2^32 for every record, so sums over fewer than 2^31 records fit 64 bits. With more
# records contributions are smaller (`dplasso.privacy.parameters.share_bits`).
CONTRIBUTION_BITS = 32
# Fraction bits of margins relative to the bound; long runs have fewer (21 at T = 2 million).
_MARGIN_BITS = 40

weight_scale = kernel(transcript.weight_scale)


class Problem(NamedTuple):
    """Data and public parameters of a run with a fixed radius.

    `unit`: fixed-point units per unit of alpha, S = 2^32 / (B C).
    `share_limit`: the bound on a record's part of a column gradient, in these units.
    `margin_unit`: fixed-point units of a margin per unit of x, 2^b / B.
    """

    design: Design
    loss: Any
    targets: Targets
    radius: float
    unit: float
    share_limit: float
    margin_unit: float
    n_steps: int

    @property
    def n_coordinates(self) -> int:
        """Coordinates of all outputs; ``k P + j`` is column j of output k."""
        return int(self.design.n_coordinates * self.loss.n_outputs)


def gradient_unit(bound: float, residual_bound: float, bits: int = CONTRIBUTION_BITS) -> float:
    """Return S = 2^bits / (B C), the fixed-point units per unit of alpha."""
    return float(2.0**bits / (bound * residual_bound))


def margin_unit(bound: float, n_steps: int) -> float:
    """Return the fixed-point units of margins per unit of x; `n_steps` cannot overflow 62 bits."""
    total = n_steps * (n_steps + 3) // 2
    bits = min(_MARGIN_BITS, 62 - total.bit_length())
    return float(2.0**bits / bound)


def design_of(X: Any, bound: float, intercept: bool, threads: Threads) -> Design:
    """Lay out a matrix or a store by rows and by columns, copied once; it is never written to.

    Raises DataError as `compress` does.
    """
    check_row_count(X.shape[0])
    matrix, is_rows = (X.rows, True) if isinstance(X, Store) else compress(X, threads.count)
    n_rows, n_columns = X.shape
    turned = transpose(matrix, n_columns if is_rows else n_rows, threads.count, room_for(X))
    rows, columns = (matrix, turned) if is_rows else (turned, matrix)
    return Design(rows, columns, n_rows, n_columns, intercept, float(bound))


def room_for(X: Any) -> Make:
    """Return the function that makes arrays of entries: in memory, or beside a store."""
    return X.scratch if isinstance(X, Store) else np.empty


def build_problem(
    design: Design,
    targets: Targets,
    *,
    radius: float,
    n_steps: int,
    loss: Any,
    share_bits: int = CONTRIBUTION_BITS,
) -> Problem:
    """Build a problem."""
    return Problem(
        design=design,
        loss=loss,
        targets=targets,
        radius=radius,
        unit=gradient_unit(design.bound, loss.residual_bound, share_bits),
        share_limit=2.0**share_bits,
        margin_unit=margin_unit(design.bound, n_steps),
        n_steps=n_steps,
    )
