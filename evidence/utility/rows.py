"""Test AUC against the number of rows, on records of known weights (`evidence.known_weights`).

Our default fit at several budgets, beside no privacy and the true weights.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from evidence.cells import Cell, failed
from evidence.datasets import known_source
from evidence.items import Item, Settings, Table
from evidence.known_weights import TRUTHS, Known
from evidence.report import grouped, plain
from evidence.utility.fits import METHODS, auc, cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Test AUC against the number of rows"
EPSILONS = [0.1, 1.0, 3.0]
_ALL = list(TRUTHS)
ROWS = [10_000, 100_000, 300_000, 1_000_000]
# More rows, of `_LONG` alone; and those that take a large machine an hour.
_MORE, _LONG, LARGE = 3_000_000, "zipf-dense", [10_000_000]
# Draws of the noise, from so many rows on.
_DRAWS = {0: 5, 100_000: 2, 1_000_000: 1}
_COLOURS = {0.1: "#E69F00", 1.0: "#0072B2", 3.0: "#009E73"}
# parameters and result of a cell
Found = tuple[Mapping[str, Any], dict[str, Any]]


def options(
    *,
    rows: list[int] = ROWS,
    truths: list[str] = _ALL,
    epsilons: list[float] = EPSILONS,
    draws: int = 0,
) -> None:
    """Name the options; 0 draws: 5, 2 from 100,000 rows on, 1 from a million."""


def cells(settings: Settings, rows: Sequence[int] = ROWS) -> list[Cell]:
    """List the cells: our default at every epsilon, no privacy and the true weights."""
    given = settings.options
    epsilons = given.get("epsilons", [1.0] if settings.quick else EPSILONS)
    rows = given.get("rows", ROWS[:1] if settings.quick else rows)
    truths = given.get("truths", _ALL[:1] if settings.quick else _ALL)
    unknown = set(truths) - set(TRUTHS)
    if unknown:
        raise ValueError(f"--truths {min(unknown)}: there are {', '.join(TRUTHS)}")
    asked = [(truth, n_rows) for n_rows in rows for truth in truths]
    if rows is ROWS and _LONG in truths:
        asked.append((_LONG, _MORE))
    found = []
    for truth, n_rows in asked:
        source = known_source(Known(TRUTHS[truth], n_rows, settings.seed))
        draws = given.get("draws", 0) or _DRAWS[max(rows for rows in _DRAWS if rows <= n_rows)]
        make = partial(cell, draws=draws, settings=settings)
        found += [make(one, "", math.inf, source=source) for one in ("oracle", "none")]
        found += [make("logistic", "dense", epsilon, source=source) for epsilon in epsilons]
    return found


def present(settings: Settings, results: list[Any], rows: Sequence[int] = ROWS) -> Item:
    """Lay out the table and the picture."""
    measured = zip(cells(settings, rows), results, strict=True)
    return item([(c.parameters, r) for c, r in measured if r and not failed(r)])


def item(found: Sequence[Found]) -> Item:
    """Return the table and the picture of cells by their parameters and results."""
    points = _points(found)
    epsilons = sorted({e for *_, e in points if math.isfinite(e)})
    columns = [*(("logistic", e) for e in epsilons), ("none", math.inf), ("oracle", math.inf)]
    head = ["labels", "rows", "columns", *(f"{e:g}" for e in epsilons)]
    lines = []
    for truth, n_rows in sorted({key[:2] for key in points}, key=_order):
        shown = [points.get((truth, n_rows, *column)) for column in columns]
        n_columns = Known(TRUTHS[truth], n_rows, 0).n_columns
        line = [TRUTHS[truth].title, f"{n_rows:,}", f"{n_columns:,}"]
        lines.append(line + ["-" if one is None else f"{one:.3f}" for one in shown])
    table = Table([*head, METHODS["none"], METHODS["oracle"]], grouped(lines))
    draw = partial(_draw, points) if points else None
    return Item("utility-rows", TITLE, (table,), draw=draw, size=(10.0, 6.4))


def is_known(about: Mapping[str, Any]) -> bool:
    """Return whether a cell was measured on records of known weights."""
    return str(about["label"]).rpartition("-")[0] in TRUTHS


def _order(key: tuple[str, int]) -> tuple[int, int]:
    return _ALL.index(key[0]), key[1]


def _points(found: Sequence[Found]) -> dict[tuple[str, int, str, float], float]:
    """Return the mean AUC by truth, rows, method and epsilon, in this order."""
    points = {}
    for about, result in found:
        truth, _, n_rows = str(about["label"]).rpartition("-")
        points[truth, int(n_rows), str(about["method"]), float(about["epsilon"])] = auc(result)
    return dict(sorted(points.items()))


def _draw(points: Mapping[tuple[str, int, str, float], float], figure: "Figure") -> None:
    """Draw AUC against N, a panel for each truth."""
    truths = [one for one in _ALL if any(key[0] == one for key in points)]
    n_down = math.ceil(len(truths) / 2)
    across = min(2, len(truths))
    axes = figure.subplots(n_down, across, sharex=True, sharey=True, squeeze=False)
    for axis, truth in zip(axes.ravel(), truths, strict=False):
        own = {key[1:]: value for key, value in points.items() if key[0] == truth}
        _panel(axis, own)
        plain(axis, TRUTHS[truth].title, grid=True)
        axis.set_xscale("log")
    for axis in axes[-1]:
        axis.set_xlabel("training rows")
    for axis in axes[:, 0]:
        axis.set_ylabel("test AUC")
    shown: dict[str, Any] = {}
    for axis in axes.ravel():
        shown |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend([*shown.values()], [*shown], loc="outside lower center", ncols=4, frameon=False)


def _panel(axis: "Axes", own: Mapping[tuple[int, str, float], float]) -> None:
    def line(method: str, epsilon: float, label: str, style: str, **more: Any) -> None:
        drawn = {n: value for (n, m, e), value in own.items() if (m, e) == (method, epsilon)}
        if drawn:
            axis.plot([*drawn], [*drawn.values()], style, label=label, markersize=4, **more)

    line("oracle", math.inf, METHODS["oracle"], ":", color="#555555")
    line("none", math.inf, METHODS["none"], "k--", linewidth=1.0)
    for epsilon in sorted({e for _, m, e in own if m == "logistic"}, reverse=True):
        line("logistic", epsilon, f"epsilon {epsilon:g}", "o-", color=_COLOURS.get(epsilon))
