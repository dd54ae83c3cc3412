"""Table 2: the data sets, and what of them is here."""

from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.cells import Advance, Cell
from evidence.datasets import find_real
from evidence.items import Item, Settings, Table
from evidence.published import FILES, NAMES, NON_ZEROS, TABLE2, TITLES
from evidence.report import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def measure(X: Any, y: Any, _advance: Advance) -> dict[str, Any]:
    """Return the sizes of a data set."""
    held = np.bincount(X.indices, minlength=X.shape[1])
    return {
        "rows": int(X.shape[0]),
        "columns": int(X.shape[1]),
        "nonzeros": int(X.nnz),
        "positive": float(np.mean(y)),
        "longest_column": int(held.max(initial=0)),
        "empty_columns": int((held == 0).sum()),
        "largest": float(np.abs(X.data).max(initial=0.0)),
    }


def cells(settings: Settings) -> list[Cell]:
    """List the data sets to count."""
    return [
        Cell("table2", "counts", measure, source=source, weight=2.0 * source.entries)
        for source in settings.sources
    ]


def present(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the published sizes and the counted ones."""
    rows, data = [], []
    for name in NAMES:
        n_rows, n_columns = TABLE2[name]
        here = find_real(name) is not None
        rows.append(
            (
                TITLES[name],
                f"{n_rows:,}",
                f"{n_columns:,}",
                f"{NON_ZEROS[name]:,}",
                f"LIBSVM, `{FILES[name]}`",
                "yes" if here else "no",
                "",
                "",
            )
        )
        data.append((name, "published", *TABLE2[name], NON_ZEROS[name], None, None, None))
    for cell, counted in zip(cells(settings), results, strict=True):
        source = cell.source
        assert source is not None
        made = source.kind == "synthetic"
        sizes = counted["rows"], counted["columns"], counted["nonzeros"]
        rows.append(
            (
                source.label,
                *(f"{size:,}" for size in sizes),
                "generated" if made else source.kind,
                source.title if made else "yes",
                f"{100 * counted['positive']:.1f} %",
                f"{100 * counted['longest_column'] / counted['rows']:.1f} %",
            )
        )
        others = counted["positive"], counted["longest_column"], counted["largest"]
        data.append((source.label, source.kind, *sizes, *others))
    head = ("data set", "N", "D", "non-zeros", "source", "present", "positive")
    return Item(
        "table2",
        "Table 2: the data sets",
        (
            "Rows and columns as the paper gives them, non-zeros as LIBSVM's page does; then the "
            "data sets of this report, counted. A twin has the rows, columns, non-zeros and column "
            "popularity of its original, not its contents.",
            Table((*head, "longest column, of rows"), rows),
        ),
        (
            *("data", "kind", "rows", "columns", "nonzeros"),
            *("positive", "longest_column", "largest_value"),
        ),
        tuple(data),
        lambda figure: _draw(figure, data),
        (8.0, 3.6),
    )


def _draw(figure: "Figure", data: list[tuple[Any, ...]]) -> None:
    axis = figure.subplots()
    place = np.arange(len(data))
    for k, (what, column) in enumerate((("N", 2), ("D", 3), ("non-zeros", 4))):
        axis.bar(place + 0.27 * (k - 1), [row[column] for row in data], 0.25, label=what)
    axis.set_yscale("log")
    labels = [f"{row[0]}, {row[1]}" for row in data]
    axis.set_xticks(place, labels, fontsize=7, rotation=25, ha="right")
    plain(axis, legend={})
