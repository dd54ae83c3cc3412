"""``dplasso data`` and ``dplasso schema``: data sets, stores, and the columns of tables."""

import json
import time
from pathlib import Path
from typing import Any

from dplasso.cli import output
from dplasso.cli.commands import add_command, command_group
from dplasso.cli.convert import StoreOptions, new_store

app = command_group("data", "Data sets and stores: list and fetch them, and see what is in them.")
schemas = command_group("schema", "What the columns of a table are: draft a schema to edit.")


def info(store: Path, verify: bool = False, as_json: bool = False) -> None:
    """Say what a store holds: for the curator, since some of it depends on the data.

    Arguments
    ---------
    store : STORE
        A store from convert.

    Options
    -------
    verify
        Read everything and compare all checksums.

    Examples
    --------
    dplasso data info train.store
    dplasso data info train.store --verify
    dplasso data info train.store --json
    """
    from dplasso.data.store import describe, open_store

    with output.progress_bars() as bars:
        if verify:
            with bars.task(f"verifying {store.name}") as progress:
                opened = open_store(store, verify=True, progress=progress)
        else:
            opened = open_store(store)
    report = describe(opened) | {"verified": verify}
    if as_json:
        output.document(report)
        return
    values = f"{report['dtype']}, largest |value| {report['largest_value']:g}"
    if report["constant"] is not None:
        values = f"all {report['constant']:g}, so not stored"
    origin = ", ".join(f"{key}: {value}" for key, value in (report["origin"] or {}).items())
    facts = {
        "store": f"{report['path']} (format {report['version']}, {report['written_by']})",
        "source": str(report["source"]),
        "rows": f"{report['n_samples']:,}",
        "columns": f"{report['n_features']:,} ({report['columns_used']:,} with entries)",
        "entries": f"{report['nnz']:,}, most in a column {report['longest_column']:,}",
        "values": values,
        "labels": ", ".join(f"{label!r}: {count:,}" for label, count in report["labels"]),
        "size": f"{report['bytes']:,} bytes",
        **({"origin": origin} if origin else {}),
        "checksums": "every checksum fits" if verify else "not compared (give --verify)",
    }
    output.facts(facts)


def list_sets(base_url: str | None = None, as_json: bool = False) -> None:
    """Show the data sets that can be fetched, with their sizes and source.

    Examples
    --------
    dplasso data list
    dplasso data list --json

    fetch downloads one and converts it to a store.
    """
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
        output.document({"data_sets": rows, "base_url": base, "folder": folder})
        return
    plain: dict[str, Any] = {"box": None, "pad_edge": False}
    sizes = [
        (
            row["name"],
            *(f"{row[count]:,}" for count in ("n_samples", "n_features", "nnz")),
            _size(row["store_bytes"]),
            _size(row["download_bytes"]) if row["downloaded"] else "no",
        )
        for row in rows
    ]
    headings = ["name", ">rows", ">columns", ">entries", ">store, about", ">downloaded"]
    output.table(headings, sizes, **plain)
    output.text()
    sources = [(row["name"], row["title"], row["source"].rpartition("/")[2]) for row in rows]
    output.table(["name", "what", "file at the source"], sources, **plain)
    output.text(f"\nsource: {base}\ndownloads: {folder}")


def _size(n_bytes: int) -> str:
    unit, factor = ("GB", 1e9) if n_bytes >= 1e9 else ("MB", 1e6)
    return f"{n_bytes / factor:,.1f} {unit}"


def fetch(
    name: str,
    *,
    out: Path | None = None,
    downloads: Path | None = None,
    base_url: str | None = None,
    making: StoreOptions,
) -> None:
    """Download one of the public data sets and convert it to a store.

    Arguments
    ---------
    name : NAME
        As dplasso data list has it.

    Output
    ------
    out : STORE
        The store to make. Default: NAME.store here.
    downloads : FOLDER
        Where the file as downloaded is kept. Default: $DPLASSO_DATA, else your cache.

    Examples
    --------
    dplasso data fetch rcv1
    dplasso data fetch url --out url.store --downloads /big/disk
    dplasso data fetch news20 --base-url http://mirror.example.org/binary/

    A broken download resumes where it stopped, in a later run too. The checksum is pinned beside
    the file at the first download and compared from then on.
    """
    from dplasso.data.files import block_source
    from dplasso.datasets import catalog

    entry = catalog.find_entry(name)
    new = new_store(out or Path(f"{name}.store"), making)
    with output.progress_bars() as bars:
        with bars.task(f"fetching {name}") as progress:
            file = catalog.fetch(name, folder=downloads, url=base_url, progress=progress)
        seconds = time.perf_counter() - new.began
        source = block_source([file], n_features=entry.n_columns)
        origin = {"route": "fetch", "name": name, "file": file.name}
        report = new.write(source, bars, origin)
    new.report(report | {"downloaded": file, "download_seconds": seconds})


def draft(table: str, label_column: str | None = None, rows: int = 1 << 16) -> None:
    """Print a draft of a schema, as JSON.

    Arguments
    ---------
    table : TABLE
        CSV, JSON lines, Parquet or Arrow.

    Options
    -------
    label_column : NAME
        Where the label is. Default: label.
    rows : N >= 1
        Rows to look at.

    Examples
    --------
    dplasso schema draft visits.csv --label-column readmitted > schema.json
    dplasso fit visits.csv --schema schema.json --epsilon 1 --model model.npz    (after editing)

    The first rows are looked at. What is drafted from records is not private: replace it by what
    was known without them.
    """
    from dplasso.encoding.source import first_rows
    from dplasso.encoding.suggest import NOTE, suggest_schema

    schema = suggest_schema(first_rows(table, rows), label_column)
    output.write_out(json.dumps(schema.to_json(), indent=1, ensure_ascii=False) + "\n")
    output.note(NOTE[0].upper() + NOTE[1:], style="yellow")


add_command(app, "info", info)
add_command(app, "list", list_sets)
add_command(app, "fetch", fetch)
add_command(schemas, "draft", draft)
