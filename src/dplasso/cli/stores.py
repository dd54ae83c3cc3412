"""``dplasso convert`` and ``data info``: stores, for large data and fast starts."""

import re
import shlex
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import typer

from dplasso.cli import output
from dplasso.cli.inputs import ReadingOptions
from dplasso.data.source_files import expand
from dplasso.data.store import describe, open_store, write_blocks
from dplasso.data.store.files import check_place
from dplasso.encoding.data_files import encode_files
from dplasso.encoding.origin import Origin, origin_of, warn_of_draft
from dplasso.errors import PrivacyLeakWarning

_AMOUNT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(I?)B?", re.IGNORECASE)
SMALLEST = 64 * 2**20


def parse_memory(text: str) -> int:
    """Read a number of bytes, or one with a unit: ``2GB`` (10^9 each), ``2GiB`` (2^30 each)."""
    match = _AMOUNT.fullmatch(text.strip())
    # "GiB" is a unit, "iB" is not.
    if match is None or (match[3] and not match[2]):
        raise typer.BadParameter(
            f"{text!r} is not an amount of memory; write 2GB or 500MB, for example"
        )
    power = " KMGT".index(match[2].upper() or " ")
    amount = int(float(match[1]) * (1024 if match[3] else 1000) ** power)
    if amount < SMALLEST:
        raise typer.BadParameter(f"{text} is too little; give at least {SMALLEST // 2**20}MiB")
    return amount


def convert(
    data: list[str],
    store: str,
    *,
    features: int | None = None,
    person_column: str | None = None,
    reading: ReadingOptions,
    memory: str = "2GB",
    force: bool = False,
) -> output.Result:
    """Convert data files to a store on disk, in bounded memory.

    Arguments
    ---------
    data : DATA...
        One or more files of one data set, or a quoted pattern: svmlight text (plain, .gz, .bz2,
        .xz), scipy sparse .npz, or tables (CSV, JSON lines, Parquet, Arrow).
    store : STORE
        The folder to make.

    Data
    ----
    features : D >= 1
        Number of columns, if it is publicly known. Default: the largest column in the data.

    Options
    -------
    memory : SIZE
        Memory to use in all, for example 2GB or 500MB; the disk does the rest.

    Output
    ------
    force
        Replace an existing store, once the new one is complete.

    Examples
    --------
    dplasso convert train.svm.gz train.store
    dplasso convert day_*.svm url.store --memory 4GB
    dplasso convert train.svm train.store --features 1000000 --binarize --force
    dplasso convert visits.parquet visits.store --schema schema.json

    A fit from a store reads no text, and keeps in memory only what grows with the number of rows
    and of columns. A store needs about 8 bytes of disk per entry (4 where all values are 1).
    """
    schema, files = reading.declared(), expand(data)
    reading.check_tables(files)
    source = encode_files(
        files, schema, person_column=person_column, n_features=features, **reading.of_rows()
    )
    origin = Origin(schema, reading.binarize)
    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=PrivacyLeakWarning)
        warn_of_draft(origin)
    reading.dialect.say(files)
    settings: dict[str, Any] = {"memory": parse_memory(memory), "force": force}
    check_place(store, force=force)
    started = time.perf_counter()
    with output.progress_bars() as bars, bars.task("reading") as progress:
        written = write_blocks(
            source, store, origin=origin.to_json(), progress=progress, **settings
        )
        report = describe(written)
    report["seconds"] = time.perf_counter() - started
    report["not_for_release"].append("seconds")
    public = None
    if schema is None and features is None:
        public = (
            f"The number of columns ({report['n_features']:,}) is treated as public; if it "
            "came from the data alone, declare it with --features."
        )
    fit = shlex.join(["dplasso", "fit", store, "--epsilon", "1", "--model", "model.npz"])
    train = f"train on it: {fit} --classes NEG,POS (for numbers: --target-bounds LOW,HIGH)"

    def show() -> None:
        facts = {"store": store, "data": output.data_text(report)}
        facts |= {"size": f"{report['bytes']:,} bytes", "seconds": f"{report['seconds']:.2f}"}
        output.facts(facts)
        output.text(train, wrap=False)
        if public is not None:
            output.text(public)

    return output.Result(report | {"public": public}, show)


def info(store: Path, verify: bool = False) -> output.Result:
    """Show what a store contains: for the curator, since some of it depends on the data.

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
    made, origin = origin_of(opened), {}
    if made is not None and made.binarize:
        origin["made by"] = "turning every value that is not zero into 1"
    if made is not None and made.schema is not None:
        origin["schema"] = "; ".join(made.schema.described())
    facts = {
        "store": f"{report['path']} (format {report['version']}, {report['written_by']})",
        "source": str(report["source"]),
        "rows": f"{report['n_samples']:,}",
        "columns": f"{report['n_features']:,}",
        "entries": f"{report['nnz']:,}",
        "values": values,
        "labels": ", ".join(f"{label!r}: {count:,}" for label, count in report["labels"]),
        "size": f"{report['bytes']:,} bytes",
        **origin,
        "checksums": "all checksums match" if verify else "entries not verified (use --verify)",
    }
    return output.Result(
        report | {"verified": verify}, partial(output.facts, facts, prose=("schema",))
    )
