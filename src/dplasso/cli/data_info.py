"""``dplasso data info``: what a store holds, and whether it is undamaged."""

from pathlib import Path
from typing import Annotated, Any

from dplasso.cli import options
from dplasso.cli.options import argument, flag
from dplasso.cli.output import print_facts, print_json, progress_bars

EXAMPLES = options.examples(
    "dplasso data info train.store",
    "dplasso data info train.store --verify",
    "dplasso data info train.store --json",
)


def info(
    store: Annotated[Path, argument("STORE", "A store from convert.")],
    verify: Annotated[bool, flag("--verify", "Read everything and compare all checksums.")] = False,
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
        print_facts(_facts(report))


def _facts(report: dict[str, Any]) -> dict[str, str]:
    values = f"{report['dtype']}, largest |value| {report['largest_value']:g}"
    if report["constant"] is not None:
        values = f"all {report['constant']:g}, so not stored"
    origin = report["origin"] or {}
    sums = "every checksum fits" if report["verified"] else "not compared (give --verify)"
    facts = {
        "store": f"{report['path']} (format {report['version']}, {report['written_by']})",
        "source": str(report["source"]),
        "rows": f"{report['n_samples']:,}",
        "columns": f"{report['n_features']:,} ({report['columns_used']:,} with entries)",
        "entries": f"{report['nnz']:,}, most in a column {report['longest_column']:,}",
        "values": values,
        "labels": ", ".join(f"{label!r}: {count:,}" for label, count in report["labels"]),
        "size": f"{report['bytes']:,} bytes",
        "origin": ", ".join(f"{key}: {value}" for key, value in origin.items()),
        "checksums": sums,
    }
    return {name: fact for name, fact in facts.items() if fact or name != "origin"}
