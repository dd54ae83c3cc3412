"""``dplasso data``: data sets and stores."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.filesize import decimal

from dplasso.cli import output
from dplasso.data.blocks import BlockSource
from dplasso.data.files import block_source
from dplasso.data.store import describe, open_store, write_store
from dplasso.data.store.place import check_place
from dplasso.datasets import catalog
from dplasso.runtime.cores import usable_cores

_AMOUNT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(I?)B?", re.IGNORECASE)
SMALLEST = 64 * 2**20


def parse_memory(text: str) -> int:
    """Read a number of bytes, or one with a unit: ``2GB`` (10^9 each), ``2GiB`` (2^30 each)."""
    found = _AMOUNT.fullmatch(text.strip())
    # An I stands for powers of 2 only behind another letter.
    if found is None or (found[3] and not found[2]):
        raise typer.BadParameter(
            f"{text!r} is not an amount of memory; write 2GB or 500MB, for example"
        )
    power = " KMGT".index(found[2].upper() or " ")
    amount = int(float(found[1]) * (1024 if found[3] else 1000) ** power)
    if amount < SMALLEST:
        raise typer.BadParameter(f"{text} is too little; give at least {SMALLEST // 2**20}MiB")
    return amount


@dataclass(frozen=True)
class StoreOptions:
    """How a store is made.

    Options
    -------
    memory : SIZE
        Memory to use in all, for example 2GB or 500MB; the disk does the rest.

    Output
    ------
    force
        Replace an existing store, once the new one is complete.
    """

    memory: str = "2GB"
    jobs: int | None = None
    force: bool = False

    def check(self, place: Path) -> None:
        """Find out now whether a store can be made there, and as the options say."""
        parse_memory(self.memory)
        check_place(place.absolute(), force=self.force)

    def write(
        self, source: BlockSource, place: Path, bars: output.Bars, origin: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Write a store, and describe it."""
        threads, memory = self.jobs or usable_cores(), parse_memory(self.memory)
        how: dict[str, Any] = {"memory": memory, "force": self.force, "n_threads": threads}
        with bars.stages() as progress:
            return describe(write_store(source, place, origin=origin, progress=progress, **how))


def print_made(what: Mapping[str, str], report: Mapping[str, Any], *more: str | None) -> None:
    """Print what was made, its size, and more sentences."""
    facts = {**what, "data": output.data_text(report), "size": f"{report['bytes']:,} bytes"}
    if "seconds" in report:
        facts["seconds"] = f"{report['seconds']:.2f}"
    output.facts(facts)
    for sentence in more:
        if sentence is not None:
            output.text(sentence)


def info(store: Path, verify: bool = False) -> output.Result:
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
    if verify:
        with output.progress_bars() as bars, bars.task(f"verifying {store.name}") as progress:
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
        "checksums": "every checksum fits"
        if verify
        else "those of entries not compared (give --verify)",
    }
    return output.Result(report | {"verified": verify}, partial(output.facts, facts))


def list_sets(base_url: str | None = None) -> output.Result:
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
    return output.Result(document, partial(_print_sets, document))


def _print_sets(document: dict[str, Any]) -> None:
    rows, look = document["data_sets"], {"box": None, "pad_edge": False}
    sizes = {
        "name": lambda row: row["name"],
        ">rows": lambda row: f"{row['n_samples']:,}",
        ">columns": lambda row: f"{row['n_features']:,}",
        ">entries": lambda row: f"{row['nnz']:,}",
        ">store, about": lambda row: decimal(row["store_bytes"]),
        ">downloaded": lambda row: decimal(row["download_bytes"]) if row["downloaded"] else "no",
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


def fetch(
    name: str,
    *,
    out: Path | None = None,
    downloads: Path | None = None,
    base_url: str | None = None,
    making: StoreOptions,
) -> output.Result:
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
    return output.Result(report, partial(print_made, {"store": str(place)}, report))
