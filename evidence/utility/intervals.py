"""Whether intervals cover as often as they say: fits of fresh records with known coefficients.

Beside coverage stand the share of coefficients that are identified, widths over those of maximum
likelihood without privacy, and how often a coefficient that is zero has p < .05.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evidence.cells import Advance, Cell
from evidence.items import Item, Settings, Table
from evidence.utility.fits import DELTA

TITLE = "Coverage of intervals that hold noise and sampling error"
EPSILONS = [0.5, 1.0, 3.0]
_LEVELS = (0.90, 0.95)
_LARGEST_P = 0.05
# Shares of the levels of a factor; the first is the reference.
_SHARES = (0.40, 0.30, 0.17, 0.10, 0.03)
_CORRELATION = 0.9
# The interval of numbers, and the spread of their errors.
BOUNDS, _SPREAD = (-5.0, 5.0), 1.0
_ADULT = (
    *("sex=Male", "marital-status=Married-civ-spouse", "education-num=13-16"),
    *("hours-per-week>=48", "age=17-25", "age>=50", "capital-gain>0", "workclass=Private"),
)
# parameters and result of a cell
Found = tuple[Mapping[str, Any], dict[str, Any]]


class Design(NamedTuple):
    """Records with known coefficients: their columns, a public bound on rows, and the intercept.

    `plan`: what a plan is told of them; None for columns that no plan is for.
    `population`: gives records that samples are drawn from, with replacement, in place of `make`;
    their coefficients are those of maximum likelihood.
    """

    make: Callable[[np.random.Generator, int, int], NDArray[np.float64]]
    row_norm: Callable[[int], float]
    intercept: float = -0.3
    numbers: bool = False
    plan: Mapping[str, Any] | None = None
    population: Callable[[], tuple[NDArray[np.float64], NDArray[np.float64]]] | None = None


def _uniform(rng: np.random.Generator, n_rows: int, n_columns: int) -> NDArray[np.float64]:
    return rng.uniform(-1.0, 1.0, (n_rows, n_columns))


def _correlated(rng: np.random.Generator, n_rows: int, n_columns: int) -> NDArray[np.float64]:
    parts = math.sqrt(_CORRELATION), math.sqrt(1.0 - _CORRELATION)
    return parts[0] * _uniform(rng, n_rows, 1) + parts[1] * _uniform(rng, n_rows, n_columns)


def _factors(rng: np.random.Generator, n_rows: int, n_columns: int) -> NDArray[np.float64]:
    """Return indicators of the levels of factors but for the first level of each."""
    each = len(_SHARES) - 1
    levels = rng.choice(each + 1, (n_rows, n_columns // each), p=_SHARES)
    return np.hstack([(one[:, None] == np.arange(1, each + 1)).astype(float) for one in levels.T])


@cache
def _adult() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return some columns of UCI Adult, and whether income is above 50,000."""
    from dplasso.datasets.adult import FEATURE_NAMES, load_adult

    records = load_adult("train")
    places = [list(FEATURE_NAMES).index(name) for name in _ADULT]
    return records.X[:, places].toarray().astype(np.float64), (records.y > 0).astype(np.float64)


_SPAN = math.sqrt(_CORRELATION) + math.sqrt(1.0 - _CORRELATION)
DESIGNS = {
    "uniform": Design(_uniform, math.sqrt, plan={"spread": 3.0**-0.5, "positive": 0.44}),
    "factors": Design(_factors, lambda n: math.sqrt(n // (len(_SHARES) - 1))),
    "correlated .9": Design(_correlated, lambda n: _SPAN * math.sqrt(n)),
    "5 % positive": Design(_uniform, math.sqrt, intercept=-3.3),
    "numbers": Design(
        _uniform,
        math.sqrt,
        numbers=True,
        plan={"spread": 3.0**-0.5, "residual": _SPREAD / BOUNDS[1], "target_bounds": BOUNDS},
    ),
    # Of the two ages a row has one.
    "Adult": Design(_uniform, lambda n: math.sqrt(n - 1), population=_adult),
}
# Rows and columns of each design, and fits of each at most.
SIZES = {
    "uniform": [(2_000, 5, 400), (20_000, 5, 400), (20_000, 40, 100), (20_000, 150, 10)],
    "factors": [(2_000, 12, 400), (20_000, 12, 400), (20_000, 40, 100)],
    "correlated .9": [(2_000, 5, 400), (20_000, 5, 400)],
    "5 % positive": [(2_000, 5, 400), (20_000, 5, 400)],
    "numbers": [(2_000, 5, 400), (20_000, 40, 100)],
    "Adult": [(8_000, 8, 400), (32_000, 8, 400)],
}


def options(*, epsilons: list[float] = EPSILONS, fits: int = 400) -> None:
    """Name the options."""


def coefficients(n_columns: int) -> NDArray[np.float64]:
    """Return coefficients of which every other is zero."""
    found = np.random.default_rng(5).normal(0.0, 1.5 * math.sqrt(3.0 / n_columns), n_columns)
    found[::2] = 0.0
    return found


def maximum_likelihood(
    X: NDArray[np.float64], y: NDArray[np.float64], numbers: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients of columns and intercept without privacy, and robust standard errors."""
    rows = np.column_stack([X, np.ones(len(X))])
    weights = np.zeros(rows.shape[1])
    for _ in range(1 if numbers else 25):
        margins = rows @ weights
        mean = margins if numbers else 1.0 / (1.0 + np.exp(-margins))
        bend = np.ones(len(y)) if numbers else mean * (1.0 - mean)
        inverse = np.linalg.inv((rows * bend[:, None]).T @ rows)
        weights = weights + inverse @ (rows.T @ (y - mean))
    left = y - (rows @ weights if numbers else 1.0 / (1.0 + np.exp(-rows @ weights)))
    spread = (rows * left[:, None] ** 2).T @ rows
    return weights, np.sqrt(np.diag(inverse @ spread @ inverse))


@dataclass(frozen=True)
class Coverage:
    """Fit fresh records again and again, and count what the intervals cover."""

    design: str
    n_rows: int
    n_columns: int
    epsilon: float
    fits: int
    n_jobs: int

    def __call__(self, X: Any, y: Any, advance: Advance) -> dict[str, Any]:
        design = DESIGNS[self.design]
        truth = np.append(coefficients(self.n_columns), design.intercept)
        if design.population is not None:
            truth, _ = maximum_likelihood(*design.population(), numbers=False)
        every: list[tuple[NDArray[Any], ...]] = []
        for draw in range(self.fits):
            rng = np.random.default_rng([draw, self.n_rows, self.n_columns])
            rows, labels = self._drawn(design, truth, rng)
            found = self._fitted(rows, labels, draw).inference_
            ends = [found.conf_int(level) for level in _LEVELS]
            covers = [(low <= truth) & (truth <= high) for low, high in (e.T for e in ends)]
            _, errors = maximum_likelihood(rows, labels, design.numbers)
            ratio = found.standard_error / errors
            every.append((found.identified, *covers, found.p_value < _LARGEST_P, ratio))
            advance((draw + 1) / self.fits)
        identified, *covers, rejected, ratio = (np.array(one) for one in zip(*every, strict=True))
        zero = identified & (truth == 0.0)
        return {
            "identified": float(identified.mean()),
            "intervals": int(identified.sum()),
            "coverage": [_part(one[identified]) for one in covers],
            "false_rejections": _part(rejected[zero]),
            "zeros": int(zero.sum()),
            "width": float(np.median(ratio[identified])) if identified.any() else None,
        }

    def _drawn(
        self, design: Design, truth: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return fresh rows and labels."""
        if design.population is not None:
            rows, labels = design.population()
            own = rng.integers(0, len(labels), self.n_rows)
            return rows[own], labels[own]
        rows = design.make(rng, self.n_rows, self.n_columns)
        margins = rows @ truth[:-1] + truth[-1]
        if design.numbers:
            return rows, np.clip(margins + rng.normal(0.0, _SPREAD, self.n_rows), *BOUNDS)
        chances = 1.0 / (1.0 + np.exp(-margins))
        return rows, (rng.random(self.n_rows) < chances).astype(np.float64)

    def _fitted(self, rows: NDArray[np.float64], labels: NDArray[np.float64], draw: int) -> Any:
        from dplasso import DPLinearRegression, DPLogisticRegression

        given: dict[str, Any] = {"classes": (0, 1)}
        kind: Any = DPLogisticRegression
        if DESIGNS[self.design].numbers:
            kind, given = DPLinearRegression, {"target_bounds": BOUNDS}
        bound = DESIGNS[self.design].row_norm(self.n_columns)
        settings = {"infer": "all", "row_norm": bound, "random_state": draw, "n_jobs": self.n_jobs}
        with warnings.catch_warnings():
            # Of seeds, and of few records.
            warnings.simplefilter("ignore", RuntimeWarning)
            return kind(self.epsilon, DELTA, **settings, **given).fit(rows, labels)


def _part(marks: NDArray[Any]) -> float | None:
    return float(np.mean(marks)) if marks.size else None


def cells(settings: Settings) -> list[Cell]:
    """List the designs, sizes and budgets."""
    epsilons = settings.options.get("epsilons", EPSILONS[1:2] if settings.quick else EPSILONS)
    most = settings.options.get("fits", 4 if settings.quick else 400)
    found = []
    for design, sizes in SIZES.items():
        for n_rows, n_columns, own in sizes[:1] if settings.quick else sizes:
            for epsilon in epsilons:
                fits = min(own, most)
                measure = Coverage(design, n_rows, n_columns, epsilon, fits, settings.n_jobs)
                about = {"design": design, "rows": n_rows, "columns": n_columns}
                about |= {"epsilon": epsilon, "fits": fits, "delta": DELTA}
                name = f"{design}-{n_rows}-{n_columns}-{epsilon:g}".replace("%", "percent")
                weight = float(fits * n_rows * n_columns**2)
                found.append(Cell("intervals", name, measure, about, None, weight))
    return found


def _planned(about: Mapping[str, Any]) -> float | None:
    """Return what width over that without privacy a plan foretells."""
    from dplasso.estimators.interval_plan import plan_intervals

    own = DESIGNS[about["design"]].plan
    if own is None:
        return None
    size = about["rows"], about["columns"]
    found = plan_intervals(about["epsilon"], about["delta"], *size, **own)
    return found.standard_error / found.without_privacy


def present(settings: Settings, results: list[Any]) -> Item:
    """Lay out the table."""
    measured = zip(cells(settings), results, strict=True)
    return item([(cell.parameters, result) for cell, result in measured if result])


def item(found: Sequence[Found]) -> Item:
    """Return the table of cells by their parameters and results."""

    def order(one: Found) -> tuple[int, int, int, float]:
        about = one[0]
        place = list(DESIGNS).index(about["design"])
        return place, about["rows"], about["columns"], about["epsilon"]

    lines = []
    for about, result in sorted(found, key=order):
        if "coverage" not in result:
            continue
        of = [f"{about['design']}", f"{about['rows']:,}", f"{about['columns']}"]
        of += [f"{about['epsilon']:g}", f"{about['fits']}", f"{result['identified']:.2f}"]
        shown = [*result["coverage"], result["false_rejections"]]
        of += ["-" if one is None else f"{one:.3f}" for one in shown]
        widths = [result["width"], _planned(about) if result["width"] else None]
        lines.append([*of, *("-" if one is None else f"{one:.2f}" for one in widths)])
    head = ["design", "rows", "columns", "epsilon", "fits", "identified", "covers, 90 %"]
    head += ["covers, 95 %", "p < .05 at zero", "width over non-private", "planned"]
    return Item("intervals", TITLE, (Table(head, lines),))
