"""``dplasso data list``: the paper's data sets, their sizes and where they come from."""

from typing import Annotated, Any

from dplasso.cli import options
from dplasso.cli.options import option
from dplasso.cli.output import print_json, print_table, print_text

EXAMPLES = options.examples(
    "dplasso data list",
    "dplasso data list --json",
    note="fetch downloads one and converts it to a store.",
)

BaseUrl = Annotated[
    str | None,
    option(
        "--base-url",
        "Where the files are: a mirror. Default: $DPLASSO_DATA_URL, else LIBSVM's data page.",
        "URL",
    ),
]


def list_sets(base_url: BaseUrl = None, as_json: options.AsJson = False) -> None:
    """Show the data sets that can be fetched, with their sizes and source."""
    from dplasso.datasets import catalog

    base, folder = catalog.base_url(base_url), catalog.download_folder()
    rows: list[dict[str, Any]] = []
    for entry in catalog.CATALOG.values():
        there = catalog.find_download(entry, folder)
        rows.append(
            {
                "name": entry.name,
                "title": entry.title,
                "n_samples": entry.n_rows,
                "n_features": entry.n_columns,
                "nnz": entry.n_nonzeros,
                "store_bytes": entry.store_bytes,
                "source": base + (there.name if there else entry.files[0]),
                "downloaded": there,
                "download_bytes": there.stat().st_size if there else None,
            }
        )
    if as_json:
        print_json({"data_sets": rows, "base_url": base, "folder": folder})
        return
    plain: dict[str, Any] = {"box": None, "pad_edge": False}
    print_table(
        ["name", ">rows", ">columns", ">entries", ">store, about", ">downloaded"],
        (
            (
                row["name"],
                *(f"{row[count]:,}" for count in ("n_samples", "n_features", "nnz")),
                _size(row["store_bytes"]),
                _size(row["download_bytes"]) if row["downloaded"] else "no",
            )
            for row in rows
        ),
        **plain,
    )
    print_text()
    print_table(
        ["name", "what", "file at the source"],
        ((row["name"], row["title"], row["source"].rpartition("/")[2]) for row in rows),
        **plain,
    )
    print_text(f"\nsource: {base}\ndownloads: {folder}")


def _size(n_bytes: int) -> str:
    unit, factor = ("GB", 1e9) if n_bytes >= 1e9 else ("MB", 1e6)
    return f"{n_bytes / factor:,.1f} {unit}"
