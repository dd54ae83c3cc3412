"""``dplasso data twin``: a store of the shape of one of the paper's data sets, generated."""

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from dplasso.cli import options
from dplasso.cli.convert import print_report, stage_bars
from dplasso.cli.memory import Memory, parse_memory
from dplasso.cli.output import print_json, progress_bars

EXAMPLES = options.examples(
    "dplasso data twin rcv1 rcv1.store",
    "dplasso data twin url url-tenth.store --scale 0.1 --seed 7",
    "dplasso data twin web web.store --memory 4GB",
    note="A twin has the rows, columns, non-zeros and popularity of columns of its original, and "
    "labels that a sparse linear model explains; not its contents. The same seed gives the same "
    "twin on any machine, whatever the memory and the threads.",
)


def twin(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", show_default=False, help="rcv1, news20, url, web or kdda."),
    ],
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", show_default=False, help="The store to make."),
    ],
    scale: Annotated[
        float,
        typer.Option("--scale", metavar="F", help="Factor on the numbers of rows and columns."),
    ] = 1.0,
    seed: Annotated[
        int, typer.Option("--seed", metavar="S", min=0, help="Everything follows from it.")
    ] = 0,
    memory: Memory = "2GB",
    jobs: options.StoreThreads = None,
    force: options.ReplaceStore = False,
    as_json: options.AsJson = False,
) -> None:
    """Generate a data set of the shape of one of the paper's, straight to disk."""
    budget = parse_memory(memory)
    from dplasso.data.store import describe, write_store
    from dplasso.data.store.place import check_place
    from dplasso.datasets.synthetic.generate import synthetic_source

    check_place(out.absolute(), force=force)
    started = time.perf_counter()
    threads = jobs or len(os.sched_getaffinity(0))
    with progress_bars() as bars, ExitStack() as shown:
        written = write_store(
            synthetic_source(name, scale, seed, n_jobs=threads),
            out,
            memory=budget,
            force=force,
            origin={"route": "twin", "name": name, "scale": scale, "seed": seed},
            progress=stage_bars(bars, shown),
            n_threads=threads,
        )
    report = describe(written) | {"seconds": time.perf_counter() - started}
    if as_json:
        print_json(report)
    else:
        print_report(report, out)
