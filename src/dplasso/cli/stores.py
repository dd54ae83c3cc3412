"""What the commands that make a store share: their options, the bars, the report."""

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dplasso.cli.output import Bars, data_text, print_facts, print_json

if TYPE_CHECKING:
    from dplasso.data.blocks import BlockSource

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
    """How a store is made, and how that is reported.

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
    as_json: bool = False


@dataclass(frozen=True)
class NewStore:
    """A store that is going to be made; `memory` in bytes, `began` by the process's clock."""

    place: Path
    options: StoreOptions
    memory: int
    began: float

    def write(
        self, source: "BlockSource", bars: Bars, origin: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Write the store; return its description and the seconds since the beginning."""
        from dplasso.data.store import describe, write_store

        with bars.stages() as progress:
            written = write_store(
                source,
                self.place,
                memory=self.memory,
                force=self.options.force,
                origin=origin,
                progress=progress,
                n_threads=self.options.jobs or len(os.sched_getaffinity(0)),
            )
        return describe(written) | {"seconds": time.perf_counter() - self.began}

    def report(self, report: Mapping[str, Any]) -> None:
        """Print what `write` returned, and perhaps more, as JSON or for a person."""
        if self.options.as_json:
            print_json(report)
            return
        facts = {"store": str(self.place), "data": data_text(report)}
        facts["size"] = f"{report['bytes']:,} bytes"
        print_facts(facts | {"seconds": f"{report['seconds']:.2f}"})


def new_store(place: Path, options: StoreOptions) -> NewStore:
    """Find out now whether a store can be made there, and as the options say."""
    from dplasso.data.store.place import check_place

    memory = parse_memory(options.memory)
    check_place(place.absolute(), force=options.force)
    return NewStore(place, options, memory, time.perf_counter())
