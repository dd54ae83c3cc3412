"""``dplasso data fetch``: a public data set, downloaded, checked and converted to a store."""

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from dplasso.cli import options
from dplasso.cli.convert import print_report, stage_bars
from dplasso.cli.data_list import BaseUrl
from dplasso.cli.memory import Memory, parse_memory
from dplasso.cli.output import print_json, progress_bars

EXAMPLES = options.examples(
    "dplasso data fetch rcv1",
    "dplasso data fetch url --out url.store --downloads /big/disk",
    "dplasso data fetch news20 --base-url http://mirror.example.org/binary/",
    note="A broken download is taken up where it stopped, by the next run too. The checksum is "
    "pinned beside the file at the first download and compared from then on.",
)


def fetch(
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="As dplasso data list has it.")
    ],
    store: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="STORE",
            show_default=False,
            help="The store to make. Default: NAME.store here.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    downloads: Annotated[
        Path | None,
        typer.Option(
            "--downloads",
            metavar="FOLDER",
            show_default=False,
            help="Where the file as downloaded is kept. Default: $DPLASSO_DATA, else your cache.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    base_url: BaseUrl = None,
    memory: Memory = "2GB",
    jobs: options.StoreThreads = None,
    force: options.ReplaceStore = False,
    as_json: options.AsJson = False,
) -> None:
    """Download one of the public data sets and convert it to a store."""
    budget = parse_memory(memory)
    from dplasso.data.blocks import block_source
    from dplasso.data.store import describe, write_store
    from dplasso.data.store.place import check_place
    from dplasso.datasets import catalog

    entry = catalog.find_entry(name)
    place = Path(f"{name}.store") if store is None else store
    check_place(place.absolute(), force=force)
    started = time.perf_counter()
    with progress_bars() as bars, ExitStack() as shown:
        with bars.task(f"fetching {name}") as progress:
            file = catalog.fetch(name, folder=downloads, url=base_url, progress=progress)
        fetched = time.perf_counter()
        written = write_store(
            block_source([file], n_features=entry.n_columns),
            place,
            memory=budget,
            force=force,
            origin={"route": "fetch", "name": name, "file": file.name},
            progress=stage_bars(bars, shown),
            n_threads=jobs or len(os.sched_getaffinity(0)),
        )
    report = describe(written) | {
        "downloaded": file,
        "download_seconds": fetched - started,
        "seconds": time.perf_counter() - started,
    }
    if as_json:
        print_json(report)
    else:
        print_report(report, place)
