"""``dplasso data info``: what a store holds, and whether it is undamaged."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from dplasso.cli import options
from dplasso.cli.output import out, print_json, progress_bars

EXAMPLES = options.examples(
    "dplasso data info train.store",
    "dplasso data info train.store --verify",
    "dplasso data info train.store --json",
)


def info(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", show_default=False, help="A store from convert.")
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Read everything and compare all checksums.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Say what a store holds: for the curator, since some of it depends on the data."""
    from dplasso.data.store import describe, open_store

    with progress_bars() as bars:
        if verify:
            with bars.task(f"verifying {store.name}") as progress:
                opened = open_store(store, verify=True, progress=progress)
        else:
            opened = open_store(store)
    report = describe(opened) | {"verified": verify}
    if as_json:
        print_json(report)
    else:
        _print_report(report)


def _print_report(report: dict[str, Any]) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("store", f"{report['path']} (format {report['version']}, {report['written_by']})")
    table.add_row("source", str(report["source"]))
    table.add_row("rows", f"{report['n_samples']:,}")
    table.add_row("columns", f"{report['n_features']:,} ({report['columns_used']:,} with entries)")
    table.add_row("non-zeros", f"{report['nnz']:,}, most in a column {report['longest_column']:,}")
    values = f"{report['dtype']}, largest |value| {report['largest_value']:g}"
    if report["constant"] is not None:
        values = f"all {report['constant']:g}, so not stored"
    table.add_row("values", values)
    labels = ", ".join(f"{label!r}: {count:,}" for label, count in report["labels"])
    table.add_row("labels", labels)
    table.add_row("size", f"{report['bytes']:,} bytes")
    if report["origin"] is not None:
        table.add_row("origin", ", ".join(f"{k}: {v}" for k, v in report["origin"].items()))
    sums = "every checksum fits" if report["verified"] else "not compared (give --verify)"
    table.add_row("checksums", sums)
    out.print(table)
