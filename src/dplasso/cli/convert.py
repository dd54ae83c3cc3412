"""``dplasso convert``: data files to a store, for data larger than memory and for fast starts."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from dplasso.cli import options, routes
from dplasso.cli.memory import Memory, parse_memory
from dplasso.cli.output import Bars, out, print_json, progress_bars
from dplasso.cli.reading import Binarize, LabelMapOption, Labels, ZeroBased, meaning_of

EXAMPLES = options.examples(
    "dplasso convert train.svm.gz train.store",
    "dplasso convert day_*.svm url.store --memory 4GB",
    "dplasso convert train.svm train.store --features 1000000 --binarize --force",
    "dplasso convert --text reviews.csv reviews.store --text-column body --label-column y "
    "--ngrams 1,2 --binary",
    "dplasso convert clicks.parquet clicks.store --hash-columns site,device --hash-bits 22",
    note="The store holds the records by rows and by columns, so that a fit starts at once and "
    "keeps in memory only what grows with the number of rows and of columns. It needs about 16 "
    "bytes of disk per non-zero (8 where all values are 1), and 4 more while it is made.",
)


def convert(
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA...",
            show_default=False,
            help="One or more files of one data set, or a quoted pattern: svmlight text (plain, "
            ".gz, .bz2, .xz, .zst), scipy sparse .npz, Parquet or Arrow, or texts with --text.",
        ),
    ],
    store: Annotated[
        Path,
        typer.Argument(metavar="STORE", show_default=False, help="The directory to make."),
    ],
    memory: Memory = "2GB",
    features: Annotated[
        int | None,
        typer.Option(
            "--features",
            metavar="D",
            min=1,
            show_default=False,
            help="Number of columns, as public knowledge. Default: the largest column in the data.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    zero_based: ZeroBased = False,
    labels: Labels = None,
    label_map: LabelMapOption = None,
    binarize: Binarize = False,
    text: routes.Text = False,
    text_column: routes.TextColumn = None,
    label_column: routes.LabelColumn = None,
    hash_bits: routes.HashBits = None,
    ngrams: routes.Ngrams = None,
    binary: routes.Binary = False,
    keep_case: routes.KeepCase = False,
    indices: routes.Indices = None,
    values: routes.Values = None,
    categories: routes.CategoryFile = None,
    ignore_unknown: routes.IgnoreUnknown = False,
    hash_columns: routes.HashColumns = None,
    jobs: options.StoreThreads = None,
    force: options.ReplaceStore = False,
    as_json: options.AsJson = False,
) -> None:
    """Convert data files to a store on disk, in bounded memory."""
    budget = parse_memory(memory)
    meaning = meaning_of(label_map)
    given = routes.RouteOptions(
        label_column=label_column,
        indices=indices,
        values=values,
        categories=categories,
        ignore_unknown=ignore_unknown,
        hash_columns=hash_columns,
        hash_bits=hash_bits,
        text=text,
        text_column=text_column,
        ngrams=ngrams,
        binary=binary,
        keep_case=keep_case,
    )
    from dplasso.data.store import describe, write_store
    from dplasso.data.store.place import check_place

    check_place(store.absolute(), force=force)
    started = time.perf_counter()
    with progress_bars() as bars, ExitStack() as shown:
        source, origin, public = routes.open_route(
            data,
            given,
            n_features=features,
            zero_based=zero_based,
            labels=labels,
            label_map=meaning,
            binarize=binarize,
        )
        written = write_store(
            source,
            store,
            memory=budget,
            force=force,
            origin=origin,
            progress=stage_bars(bars, shown),
            n_threads=jobs or len(os.sched_getaffinity(0)),
        )
    if public is None and features is None:
        public = (
            f"The number of columns ({written.shape[1]:,}) is treated as public; where the data "
            "alone told it, declare it with --features."
        )
    report = describe(written) | {"public": public, "seconds": time.perf_counter() - started}
    if as_json:
        print_json(report)
        return
    print_report(report, store)
    out.print(f"train on it: dplasso fit {store} --epsilon 1", markup=False, highlight=False)
    if public is not None:
        out.print(public, markup=False, highlight=False)


def stage_bars(bars: Bars, shown: ExitStack) -> Callable[[str, int, int], None]:
    """Show each stage of a conversion as a bar of its own.

    Parameters
    ----------
    bars : Bars
        The display.
    shown : ExitStack
        Ends the bar of the last stage.

    Returns
    -------
    callable
        ``progress(stage, done, total)``, as `write_store` calls it.
    """
    updates: dict[str, Callable[[int, int], None]] = {}

    def progress(stage: str, done: int, total: int) -> None:
        if stage not in updates:
            shown.close()
            updates[stage] = shown.enter_context(bars.task(stage))
        updates[stage](done, total)

    return progress


def print_report(report: Mapping[str, Any], store: Path) -> None:
    """Print what was written.

    Parameters
    ----------
    report : mapping
        As `dplasso.data.store.describe` gives it, and ``seconds``.
    store : pathlib.Path
        Where.
    """
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("store", str(store))
    table.add_row(
        "data",
        f"{report['n_samples']:,} rows, {report['n_features']:,} columns, "
        f"{report['nnz']:,} non-zeros",
    )
    table.add_row("size", f"{report['bytes']:,} bytes")
    table.add_row("seconds", f"{report['seconds']:.2f}")
    out.print(table)
