"""Table 2: the data sets, and what of them is here."""

from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.paper.cells import Advance, Cell
from evidence.paper.datasets import find_real
from evidence.paper.items import Item, Settings
from evidence.paper.published import NAMES, TABLE2, TITLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def measure(X: Any, y: Any, _advance: Advance) -> dict[str, Any]:
    """Count a data set."""
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
        Cell("table2", "counts", source, {}, 2.0 * source.entries, measure)
        for source in settings.sources
    ]


def present(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the published sizes and the counted ones."""
    from dplasso.datasets.catalog import CATALOG

    rows, data = [], []
    for name in NAMES:
        n_rows, n_columns = TABLE2[name]
        entry = CATALOG[name]
        here = find_real(name) is not None
        rows.append(
            (
                TITLES[name],
                f"{n_rows:,}",
                f"{n_columns:,}",
                f"{entry.n_nonzeros:,}",
                f"LIBSVM, `{entry.files[0]}`",
                "yes" if here else "no",
                "",
                "",
            )
        )
        data.append((name, "published", n_rows, n_columns, entry.n_nonzeros, None, None, None))
    for cell, counted in zip(cells(settings), results, strict=True):
        source = cell.source
        assert source is not None
        rows.append(
            (
                source.label,
                f"{counted['rows']:,}",
                f"{counted['columns']:,}",
                f"{counted['nonzeros']:,}",
                "generated" if source.kind == "twin" else source.kind,
                source.title if source.kind == "twin" else "yes",
                f"{100 * counted['positive']:.1f} %",
                f"{100 * counted['longest_column'] / counted['rows']:.1f} %",
            )
        )
        data.append(
            (
                source.label,
                source.kind,
                counted["rows"],
                counted["columns"],
                counted["nonzeros"],
                counted["positive"],
                counted["longest_column"],
                counted["largest"],
            )
        )
    return Item(
        name="table2",
        title="Table 2: the data sets",
        paragraphs=(
            "Rows and columns as the paper gives them, non-zeros as LIBSVM's page does; then the "
            "data sets of this report, counted. A twin has the rows, columns, non-zeros and column "
            "popularity of its original, not its contents.",
        ),
        head=(
            "data set",
            "N",
            "D",
            "non-zeros",
            "source",
            "present",
            "positive",
            "longest column, of rows",
        ),
        rows=tuple(rows),
        data_head=(
            "data",
            "kind",
            "rows",
            "columns",
            "nonzeros",
            "positive",
            "longest_column",
            "largest_value",
        ),
        data_rows=tuple(data),
        draw=lambda figure: _draw(figure, data),
        size=(8.0, 3.6),
    )


def _draw(figure: "Figure", data: list[tuple[Any, ...]]) -> None:
    axis = figure.subplots()
    place = np.arange(len(data))
    for k, (what, column) in enumerate((("N", 2), ("D", 3), ("non-zeros", 4))):
        axis.bar(place + 0.27 * (k - 1), [row[column] for row in data], 0.25, label=what)
    axis.set_yscale("log")
    labels = [f"{row[0]}, {row[1]}" for row in data]
    axis.set_xticks(place, labels, fontsize=7, rotation=25, ha="right")
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
