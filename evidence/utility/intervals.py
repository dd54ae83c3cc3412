"""Whether intervals cover as often as they say: fits of fresh records with known coefficients.

Beside coverage stand the share of coefficients that are identified, widths over those of
statsmodels without privacy, and how often a coefficient that is zero has p < .05.
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
# Shares of the levels of a factor.
_SHARES = (0.40, 0.30, 0.17, 0.10, 0.03)
_CORRELATION = 0.9
# Of fewer intervals, coverage says little.
_FEWEST = 100
# The interval of numbers, and the spread of their errors.
BOUNDS, SPREAD = (-5.0, 5.0), 1.0
_ADULT = (
    *("sex=Male", "marital-status=Married-civ-spouse", "education-num=13-16"),
    *("hours-per-week>=48", "age=17-25", "age>=50", "capital-gain>0", "workclass=Private"),
)
# parameters and result of a cell
Found = tuple[Mapping[str, Any], dict[str, Any]]


class Design(NamedTuple):
    """Records with known coefficients: their columns, a public bound on rows, and the intercept.

    `names`: of the columns, where they are one-hot; the first of a variable has the coefficient 0.
    `population`: gives records that samples are drawn from, with replacement, in place of `make`;
    their coefficients are those of maximum likelihood.
    """

    make: Callable[[np.random.Generator, int, int], NDArray[np.float64]]
    row_norm: Callable[[int], float]
    intercept: float = -0.3
    numbers: bool = False
    names: Callable[[int], list[str]] | None = None
    population: Callable[[], tuple[NDArray[np.float64], NDArray[np.float64]]] | None = None


def _uniform(rng: np.random.Generator, n_rows: int, n_columns: int) -> NDArray[np.float64]:
    return rng.uniform(-1.0, 1.0, (n_rows, n_columns))


def _correlated(rng: np.random.Generator, n_rows: int, n_columns: int) -> NDArray[np.float64]:
    parts = math.sqrt(_CORRELATION), math.sqrt(1.0 - _CORRELATION)
    return parts[0] * _uniform(rng, n_rows, 1) + parts[1] * _uniform(rng, n_rows, n_columns)


def _factors(rng: np.random.Generator, n_rows: int, n_columns: int) -> NDArray[np.float64]:
    """Return indicators of all levels of factors."""
    each = len(_SHARES)
    levels = rng.choice(each, (n_rows, n_columns // each), p=_SHARES)
    return np.hstack([(one[:, None] == np.arange(each)).astype(float) for one in levels.T])


def _factor_names(n_columns: int) -> list[str]:
    each = len(_SHARES)
    return [f"factor {j // each}={j % each}" for j in range(n_columns)]


@cache
def _adult() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return some columns of UCI Adult, and whether income is above 50,000."""
    from dplasso.datasets import FEATURE_NAMES, load_adult

    records = load_adult("train")
    places = [list(FEATURE_NAMES).index(name) for name in _ADULT]
    return records.X[:, places].toarray().astype(np.float64), (records.y > 0).astype(np.float64)


_SPAN = math.sqrt(_CORRELATION) + math.sqrt(1.0 - _CORRELATION)
DESIGNS = {
    "uniform": Design(_uniform, math.sqrt),
    "factors": Design(_factors, lambda n: math.sqrt(n // len(_SHARES)), names=_factor_names),
    "correlated .9": Design(_correlated, lambda n: _SPAN * math.sqrt(n)),
    "5 % positive": Design(_uniform, math.sqrt, intercept=-3.3),
    "numbers": Design(_uniform, math.sqrt, numbers=True),
    # Of the two ages a row has one.
    "Adult": Design(_uniform, lambda n: math.sqrt(n - 1), population=_adult),
}
# Rows and columns of each design, and fits of each at most.
SIZES = {
    "uniform": [(2_000, 5, 400), (20_000, 5, 400), (20_000, 40, 400), (20_000, 150, 10)],
    "factors": [(2_000, 15, 400), (20_000, 15, 400), (20_000, 50, 400)],
    "correlated .9": [(2_000, 5, 400), (20_000, 5, 400), (20_000, 40, 400)],
    "5 % positive": [(2_000, 5, 400), (20_000, 5, 400), (20_000, 40, 400)],
    "numbers": [(2_000, 5, 400), (20_000, 40, 400)],
    "Adult": [(8_000, 8, 400), (32_000, 8, 400)],
}


def options(*, epsilons: list[float] = EPSILONS, fits: int = 400) -> None:
    """Name the options."""


def coefficients(design: Design, n_columns: int) -> NDArray[np.float64]:
    """Return the coefficients of columns and intercept, of which every other is zero."""
    if design.population is not None:
        return without_privacy(*design.population(), numbers=design.numbers)[0]
    levels = len(_SHARES) if design.names else 1
    n_own = n_columns // levels * max(1, levels - 1)
    own = np.random.default_rng(5).normal(0.0, 1.5 * math.sqrt(3.0 / n_own), n_own)
    own[::2] = 0.0
    if design.names:
        # The first level of each factor has none.
        own = np.pad(own.reshape(-1, levels - 1), ((0, 0), (1, 0))).ravel()
    return np.append(own, design.intercept)


def differences(
    truth: NDArray[np.float64], names: Sequence[str], references: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the coefficients as differences from reference categories, and the columns left."""
    left, found = np.array([name not in references for name in names]), truth.copy()
    variables = np.array([name.partition("=")[0] for name in names])
    for reference in references:
        shift = truth[list(names).index(reference)]
        found[:-1][variables == reference.partition("=")[0]] -= shift
        found[-1] += shift
    return found[np.append(left, True)], left


def without_privacy(
    X: NDArray[np.float64], y: NDArray[np.float64], numbers: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients of columns and intercept as statsmodels has them, and robust errors."""
    import statsmodels.api as sm

    rows = np.column_stack([X, np.ones(len(X))])
    kind: Any = sm.OLS(y, rows) if numbers else sm.Logit(y, rows)
    found = kind.fit(cov_type="HC0", **({} if numbers else {"disp": 0}))
    return found.params, found.bse


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
        truth = coefficients(design, self.n_columns)
        every: list[list[NDArray[Any]]] = [[] for _ in range(len(_LEVELS) + 4)]
        for draw in range(self.fits):
            rng = np.random.default_rng([draw, self.n_rows, self.n_columns])
            rows, labels = self._drawn(design, truth, rng)
            found = self._fitted(rows, labels, draw).inference_
            own, left = truth, np.ones(self.n_columns, dtype=np.bool_)
            if design.names is not None:
                own, left = differences(truth, design.names(self.n_columns), found.references)
            ends = [found.conf_int(level) for level in _LEVELS]
            covers = [(low <= own) & (own <= high) for low, high in (e.T for e in ends)]
            _, errors = without_privacy(rows[:, left], labels, design.numbers)
            ratio, rejected = found.standard_error / errors, found.p_value < _LARGEST_P
            fit = (found.identified, *covers, rejected, ratio, own == 0.0)
            for part, one in zip(every, fit, strict=True):
                part.append(one)
            advance((draw + 1) / self.fits)
        # Fits may choose different numbers of reference categories.
        identified, *covers, rejected, ratio, zero = (np.concatenate(part) for part in every)
        zero &= identified
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
        return rows, labelled(rows, truth, rng, design.numbers)

    def _fitted(self, rows: NDArray[np.float64], labels: NDArray[np.float64], draw: int) -> Any:
        import pandas as pd

        design = DESIGNS[self.design]
        X: Any = rows
        if design.names is not None:
            X = pd.DataFrame(rows, columns=design.names(self.n_columns))
        bound = design.row_norm(self.n_columns)
        return fitted(self.epsilon, X, labels, bound, design.numbers, draw, self.n_jobs)


def labelled(
    rows: NDArray[np.float64],
    truth: NDArray[np.float64],
    rng: np.random.Generator,
    numbers: bool,
) -> NDArray[np.float64]:
    """Return labels of rows with these coefficients of columns and intercept."""
    margins = rows @ truth[:-1] + truth[-1]
    if numbers:
        return np.clip(margins + rng.normal(0.0, SPREAD, len(rows)), *BOUNDS)
    chances = 1.0 / (1.0 + np.exp(-margins))
    return (rng.random(len(rows)) < chances).astype(np.float64)


def fitted(
    epsilon: float,
    X: Any,
    labels: NDArray[np.float64],
    row_norm: float,
    numbers: bool,
    draw: int,
    n_jobs: int,
) -> Any:
    """Return a fit with intervals."""
    from dplasso import DPLinearRegression, DPLogisticRegression

    settings: dict[str, Any] = {"infer": "all", "row_norm": row_norm, "n_jobs": n_jobs}
    settings["random_state"] = draw
    kind: Any = DPLinearRegression if numbers else DPLogisticRegression
    settings |= {"target_bounds": BOUNDS} if numbers else {"classes": (0, 1)}
    with warnings.catch_warnings():
        # Of seeds, and of few records.
        warnings.simplefilter("ignore", RuntimeWarning)
        return kind(epsilon, DELTA, **settings).fit(X, labels)


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


def present(settings: Settings, results: list[Any]) -> Item:
    """Lay out the table."""
    measured = zip(cells(settings), results, strict=True)
    return item([(cell.parameters, result) for cell, result in measured if result])


def item(found: Sequence[Found]) -> Item:
    """Return the table of cells by their parameters and results, with all epsilons in one line."""
    designs = list(DESIGNS)
    cases: dict[tuple[int, int, int], list[list[str]]] = {}
    for about, result in sorted(found, key=lambda one: one[0]["epsilon"]):
        if "coverage" in result:
            case = designs.index(about["design"]), about["rows"], about["columns"]
            enough = result["intervals"] >= _FEWEST
            shown = [f"{about['epsilon']:g}", f"{result['identified']:.2f}"]
            shown.append(f"{result['coverage'][-1]:.3f}" if enough else "-")
            shown.append("-" if result["width"] is None else f"{result['width']:.2f}")
            cases.setdefault(case, []).append(shown)
    lines = [
        [
            designs[case[0]],
            *(f"{size:,}" for size in case[1:]),
            *map("; ".join, zip(*shown, strict=True)),
        ]
        for case, shown in sorted(cases.items())
    ]
    head = ["design", "rows", "columns", "epsilon", "identified", "95 % intervals cover"]
    return Item("intervals", TITLE, (Table([*head, "width over statsmodels"], lines),))
