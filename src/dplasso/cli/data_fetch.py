"""``dplasso data fetch``: a public data set, downloaded, checked and converted to a store."""

import time
from pathlib import Path
from typing import Annotated

from dplasso.cli import options
from dplasso.cli.data_list import BaseUrl
from dplasso.cli.options import OUTPUT, argument, option
from dplasso.cli.output import progress_bars
from dplasso.cli.stores import StoreOptions, new_store

EXAMPLES = options.examples(
    "dplasso data fetch rcv1",
    "dplasso data fetch url --out url.store --downloads /big/disk",
    "dplasso data fetch news20 --base-url http://mirror.example.org/binary/",
    note="A broken download resumes where it stopped, in a later run too. The checksum is "
    "pinned beside the file at the first download and compared from then on.",
)


def fetch(
    name: Annotated[str, argument("NAME", "As dplasso data list has it.")],
    *,
    output: Annotated[
        Path | None,
        option("--out", "The store to make. Default: NAME.store here.", "STORE", OUTPUT),
    ] = None,
    downloads: Annotated[
        Path | None,
        option(
            "--downloads",
            "Where the file as downloaded is kept. Default: $DPLASSO_DATA, else your cache.",
            "FOLDER",
            OUTPUT,
        ),
    ] = None,
    base_url: BaseUrl = None,
    making: StoreOptions,
) -> None:
    """Download one of the public data sets and convert it to a store."""
    from dplasso.data.files import block_source
    from dplasso.datasets import catalog

    entry = catalog.find_entry(name)
    new = new_store(output or Path(f"{name}.store"), making)
    with progress_bars() as bars:
        with bars.task(f"fetching {name}") as progress:
            file = catalog.fetch(name, folder=downloads, url=base_url, progress=progress)
        seconds = time.perf_counter() - new.began
        source = block_source([file], n_features=entry.n_columns)
        origin = {"route": "fetch", "name": name, "file": file.name}
        report = new.write(source, bars, origin)
    new.report(report | {"downloaded": file, "download_seconds": seconds})
