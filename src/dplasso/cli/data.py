"""``dplasso data``: stores."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer

from dplasso.cli import output
from dplasso.data.blocks import BlockSource
from dplasso.data.store import describe, open_store, write_store
from dplasso.data.store.place import check_place
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
