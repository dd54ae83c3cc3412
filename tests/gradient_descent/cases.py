"""Small data for noisy gradient descent, solvers on them in a line, and every sum over records.

The contract of sums is tested over `SUMS`: a sum that is new is covered by a line there.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dplasso.gradient_descent.forward_selection import ForwardSelection
from dplasso.gradient_descent.gradient_rows import build_gradient_rows
from dplasso.gradient_descent.noisy_descent import NoisyGradientDescent, gradient_unit
from dplasso.gradient_descent.row_sums import Units
from dplasso.losses.logistic import Logistic
from dplasso.losses.multinomial import Multinomial, norm_bound
from dplasso.losses.squared import Squared
from dplasso.losses.targets import targets_of
from dplasso.matrix.scaling import NO_SCALE_EXPONENTS, UNLIMITED, Scaling
from dplasso.phases.moments import triangle_size
from dplasso.privacy.randomness import stream_from_key
from dplasso.runtime.threads import ONE_THREAD
from gradient_descent import reference

# Entries that somebody might choose.
EXTREMES = st.sampled_from([1.7e308, -1e300, 1e-300, 5e-324, 2.3e-290, 1.0, 0.0, -0.0])
HOSTILE = st.floats(allow_nan=False, allow_infinity=False) | EXTREMES


def stream(seed=0):
    key = np.random.default_rng(seed).integers(0, 2**32, 8, dtype=np.uint64)
    return stream_from_key(key.astype(np.uint32))


def records(n_rows=40, n_columns=12, *, density=0.4, seed=0, dtype=np.float64):
    """Return dense rows, one of them empty and one column without entries, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0.0, 1.5, (n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < density)
    X[3], X[:, 5] = 0.0, 0.0
    return X.astype(dtype), rng.integers(0, 2, n_rows).astype(np.float64)


def designs(n_rows=300):
    """Return rows that somebody might choose so that steps are too long for them."""
    rng = np.random.default_rng(0)
    signs = rng.choice([1.0, -1.0], (n_rows, 1))
    sparse = (rng.random((n_rows, 60)) < 0.05) * rng.normal(size=(n_rows, 60))
    few = np.eye(60)[rng.integers(0, 60, n_rows)]
    return {
        "all columns equal": np.repeat(signs, 9, axis=1),
        "one dense column": np.hstack([signs, sparse]),
        "blocks of copies": np.repeat(few[:, :20], 4, axis=1),
        "two values": np.where(rng.random((n_rows, 7)) < 0.5, 1e-3, 1e3),
        "two kinds of rows": np.where(rng.random((n_rows, 1)) < 0.5, 1.0, 2.0) * np.ones(10),
        "one entry a row": few,
        "long and short rows": np.vstack([np.ones((n_rows // 3, 60)), few[n_rows // 3 :]]),
        "empty": np.zeros((n_rows, 4)),
        "one row": np.ones((1, 30)),
        "sparse": sparse,
    }


def some_halvings(n_columns=12):
    """Return scale_exponents of columns, none of some."""
    return (np.arange(n_columns) * 5 % 7 % 4).astype(np.int8)


UNIT = 2.0**32
# Of the weights at which residuals are computed.
SIZES = 0.0, 1.0, 30.0, 1e200
PLAIN = Scaling(np.zeros(0, dtype=np.int64), 0.0, None)
SCALINGS = {
    "plain": PLAIN,
    "constant": PLAIN._replace(constant=0.1),
    "bounded": PLAIN._replace(constant=0.1, norm_bound=1.5),
    "short": PLAIN._replace(constant=0.1, norm_bound=1e-9),
    "centred": PLAIN._replace(
        centres=np.array([-3.0, *[0.0] * 4, 0.1, 5.0, *[0.0] * 4, 1e9]),
        limits=np.where(np.arange(12) % 6, UNLIMITED, 4.0),
    ),
    "halved": PLAIN._replace(constant=0.1, scale_exponents=some_halvings()),
}


def laid_out(X, y, loss, weights=None, *, threads=ONE_THREAD):
    """Return the records as a fit lays them out."""
    targets = targets_of(np.asarray(y, dtype=np.float64), weights)
    return build_gradient_rows(X, loss, targets, threads)


def average(run):
    """Return the average that is released, flat."""
    return np.concatenate(run.average()).ravel()


def solver(
    X,
    y,
    schedule,
    *,
    loss=None,
    constant=0.0,
    words=None,
    scale_exponents=NO_SCALE_EXPONENTS,
    threads=ONE_THREAD,
    most=0,
    sizes=None,
    constant_steps=1.0,
    **options,
):
    """Return a solver that has taken all its steps; `most`, if not 0: how many columns enter."""
    loss = loss or LOGISTIC
    scaling = PLAIN._replace(constant=constant, scale_exponents=scale_exponents)
    unit = gradient_unit(loss.residual_bound, float(schedule.noise_scales.max()))
    rows = laid_out(X, y, loss, threads=threads)
    given = rows.part(scaling, unit), rows.n_columns, loss.n_outputs, unit, schedule
    options |= {"intercept": constant != 0.0, "scale_exponents": scale_exponents}
    if most:
        shape, last = (rows.n_columns, loss.n_outputs), schedule.first_averaged - 1
        options["selection"] = ForwardSelection(shape, most, last, sizes, constant_steps)
    made = NoisyGradientDescent(*given, words or stream(), threads=threads, **options)
    made.advance(1, schedule.n_steps)
    return made


def model(size, n_outputs=1):
    return np.random.default_rng(8).normal(size=(size, n_outputs))


def said(scaling):
    """Return what the reference is told of a scaling."""
    halvings = scaling.scale_exponents
    return {
        "constant": scaling.constant,
        "norm_bound": scaling.norm_bound,
        "scale_exponents": halvings if halvings.size else None,
    }


@dataclass(frozen=True)
class Sum:
    """Exact sums over records, in `n_parts` for each model if they are of several models.

    `at` returns the parts. One record adds at most one unit to each, in L2.
    `expected` returns what the reference adds to all of them for each record, shape (N, size). A
    total may differ by `tolerance` from that.
    """

    loss: Any
    tolerance: int = 0
    n_parts: int = 1
    scalings = tuple(SCALINGS)
    sizes = (1.0,)

    def released(self, rows, scaling, unit=UNIT):
        """Return the parts of all models."""
        # Interpreted kernels warn of what compiled ones pass over.
        with np.errstate(all="ignore"):
            return [sums for size in self.sizes for sums in self.at(size, rows, scaling, unit)]

    def reference(self, X, y, scaling, weights):
        """Return what the reference adds to them for each record."""
        X = np.asarray(X, dtype=np.float64)
        if scaling.centres.size:
            X = np.clip(X - scaling.centres, -scaling.limits, scaling.limits)
        given = X, y, scaling, weights
        return np.hstack([self.expected(size, *given) for size in self.sizes])


class Gradients(Sum):
    """The sums of a step."""

    sizes = SIZES

    def at(self, size, rows, scaling, unit):
        own = size * model(rows.n_columns + (scaling.constant > 0), self.loss.n_outputs)
        return [rows.part(scaling, unit / self.loss.residual_bound).sums(own.ravel())]

    def expected(self, size, X, y, scaling, weights):
        own = size * model(X.shape[1] + (scaling.constant > 0), self.loss.n_outputs)
        given = own, self.loss, UNIT / self.loss.residual_bound
        return reference.contributions(X, y, *given, record_weights=weights, **said(scaling))


class Energies(Sum):
    """The squares of columns, and how many rows there are of each load."""

    def loads(self, size, scaling):
        some = np.random.default_rng(9).integers(1, 257, size)
        return some if scaling.scale_exponents.size else some[:0]

    def at(self, _, rows, scaling, unit):
        return [rows.energies(scaling, unit, self.loads(rows.n_columns, scaling))]

    def expected(self, _, X, y, scaling, weights):
        loads = self.loads(X.shape[1], scaling)
        given = {"weights": weights, "loads": loads if loads.size else None}
        return reference.energies(X, UNIT, **given, **said(scaling))


class Magnitudes(Sum):
    """How many entries of each column have each magnitude."""

    scalings = "plain", "centred"

    def at(self, _, rows, scaling, unit):
        return [rows.magnitudes(scaling, unit)]

    def expected(self, _, X, y, scaling, weights):
        return reference.magnitudes(X, UNIT, weights=weights)


class Entries(Sum):
    """The entries of some columns, each over the scale of the column."""

    scalings = "plain", "centred"

    def scales(self, size):
        return np.resize([2.0**20, *[0.0] * 5, 2.0, 2.0**-6, 0.0, 0.0, 2.0**-30, 2.0**31], size)

    def at(self, _, rows, scaling, unit):
        return [rows.column_sums(scaling, self.scales(rows.n_columns), 4.0, unit)]

    def expected(self, _, X, y, scaling, weights):
        return reference.entries(X, self.scales(X.shape[1]), 4.0, UNIT, weights=weights)


class Moments(Sum):
    """What intervals follow from."""

    scalings = tuple(name for name in SCALINGS if name != "halved")
    sizes = SIZES

    def units(self, unit=UNIT):
        """Return units of which a record adds at most `unit` to each part."""
        bound, squares = self.loss.residual_bound, self.n_parts == 3
        return Units(unit / bound, unit / self.loss.curvature, squares * unit / bound**2)

    def at(self, size, rows, scaling, unit):
        own = size * model(rows.n_columns + (scaling.constant > 0))[:, 0]
        edges = [own.size, own.size + triangle_size(own.size)]
        sums = rows.moments(self.loss, scaling, own, self.units(unit))
        return np.split(sums, edges[: self.n_parts - 1])

    def expected(self, size, X, y, scaling, weights):
        own = size * model(X.shape[1] + (scaling.constant > 0))[:, 0]
        given = {"weights": weights, "constant": scaling.constant, "norm_bound": scaling.norm_bound}
        return reference.moments(X, y, own, self.loss, self.units(), **given)


class Named(Sum):
    """The same of one named column, whose margins and entries follow from released weights."""

    scalings = ("plain",)
    sizes = SIZES
    offsets = np.array([0.1, -0.2, 0.0])

    def units(self, unit=UNIT):
        bound = self.loss.residual_bound
        return Units(unit / bound, unit, unit / bound**2)

    def at(self, size, rows, scaling, unit):
        own = size * model(rows.n_columns, 3)
        return np.split(rows.named_sums(self.loss, own, self.offsets, self.units(unit)), 3)

    def expected(self, size, X, y, scaling, weights):
        given = size * model(X.shape[1], 3), self.offsets, y, self.loss, self.units()
        return reference.named_moments(X, *given, weights)


LOGISTIC = Logistic(0.5)
# The compiled exponential may differ from the interpreted one in its last bit.
LOSSES = {"logistic": Logistic(1.0), "clipped": LOGISTIC, "squared": Squared(0.5)}
SUMS = {
    "gradients": Gradients(LOGISTIC),
    "gradients, other bound": Gradients(Logistic(0.7)),
    "gradients, tiny bound": Gradients(Squared(1e-9)),
    "gradients, several": Gradients(Multinomial(3, norm_bound(3, 0.5))),
    "gradients, several, other bound": Gradients(Multinomial(3, 0.6)),
    "energies": Energies(LOGISTIC),
    "magnitudes": Magnitudes(LOGISTIC),
    "entries": Entries(LOGISTIC),
    **{f"moments, {name}": Moments(loss, 2**8, 3) for name, loss in LOSSES.items()},
    "moments without squares": Moments(Logistic(1.0), 2**8, 2),
    **{f"named column, {name}": Named(loss, 2**12, 3) for name, loss in LOSSES.items()},
}
