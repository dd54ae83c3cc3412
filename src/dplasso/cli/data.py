"""``dplasso data``: data sets and stores."""

import time
from functools import partial
from pathlib import Path
from typing import Any

from dplasso.cli import output
from dplasso.cli.convert import StoreOptions, print_made
from dplasso.data.files import block_source
from dplasso.data.store import describe, open_store
from dplasso.datasets import catalog


def info(store: Path, verify: bool = False) -> output.Told:
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
    with output.progress_bars() as bars:
        if verify:
            with bars.task(f"verifying {store.name}") as progress:
                opened = open_store(store, verify=True, progress=progress)
        else:
            opened = open_store(store)
    report = describe(opened)
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
    return output.Told(report | {"verified": verify}, partial(output.facts, facts))


def list_sets(base_url: str | None = None) -> output.Told:
    """Show the data sets that can be fetched, with their sizes and source.

    Examples
    --------
    dplasso data list
    dplasso data list --json

    fetch downloads one and converts it to a store.
    """
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
    document = {"data_sets": rows, "base_url": base, "folder": folder}
    return output.Told(document, partial(_print_sets, document))


def _print_sets(document: dict[str, Any]) -> None:
    rows, look = document["data_sets"], {"box": None, "pad_edge": False}
    sizes = {
        "name": lambda row: row["name"],
        ">rows": lambda row: f"{row['n_samples']:,}",
        ">columns": lambda row: f"{row['n_features']:,}",
        ">entries": lambda row: f"{row['nnz']:,}",
        ">store, about": lambda row: _size(row["store_bytes"]),
        ">downloaded": lambda row: _size(row["download_bytes"]) if row["downloaded"] else "no",
    }
    output.listing(sizes, rows, **look)
    output.text()
    sources = {
        "name": lambda row: row["name"],
        "what": lambda row: row["title"],
        "file at the source": lambda row: row["source"].rpartition("/")[2],
    }
    output.listing(sources, rows, **look)
    output.text(f"\nsource: {document['base_url']}\ndownloads: {document['folder']}")


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
) -> output.Told:
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
    entry, place = catalog.find_entry(name), out or Path(f"{name}.store")
    making.check(place)
    started = time.perf_counter()
    with output.progress_bars() as bars:
        with bars.task(f"fetching {name}") as progress:
            file = catalog.fetch(name, folder=downloads, url=base_url, progress=progress)
        fetched = time.perf_counter() - started
        source = block_source([file], n_features=entry.n_columns)
        origin = {"route": "fetch", "name": name, "file": file.name}
        report = making.write(source, place, bars, origin)
    report |= {"seconds": time.perf_counter() - started, "downloaded": file}
    report["download_seconds"] = fetched
    return output.Told(report, partial(print_made, {"store": str(place)}, report))
