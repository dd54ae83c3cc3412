"""``dplasso convert`` and ``data info``: stores, for large data and fast starts."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from dplasso.cli import output
from dplasso.cli.clusters import ClusterOptions
from dplasso.cli.inputs import ReadingOptions, refuse
from dplasso.cluster.storage import check_free, put_store
from dplasso.data.formats import is_table
from dplasso.data.source_files import expand, is_address
from dplasso.data.store import describe, open_store, write_store
from dplasso.data.store.files import check_place
from dplasso.data.store.opening import is_store
from dplasso.data.table_batches import ListColumns
from dplasso.encoding.files import encode_files, need_pyarrow
from dplasso.encoding.schema import Schema
from dplasso.errors import DataError
from dplasso.files.disk import make_folder

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


def _check_place(store: str, *, force: bool) -> None:
    """Refuse a place where a store cannot be made."""
    if is_address(store):
        check_free(store, force=force)
    else:
        check_place(Path(store).absolute(), force=force)


def convert(
    data: list[str],
    store: str,
    *,
    features: int | None = None,
    person_column: str | None = None,
    reading: ReadingOptions,
    indices: str | None = None,
    values: str | None = None,
    memory: str = "2GB",
    force: bool = False,
    cluster: ClusterOptions,
) -> output.Result:
    """Convert data files to a store on disk, in bounded memory; with --cluster each to its own.

    Arguments
    ---------
    data : DATA...
        One or more files of one data set, or a quoted pattern: svmlight text (plain, .gz, .bz2,
        .xz), scipy sparse .npz, or tables (CSV, JSON lines, Parquet, Arrow).
    store : STORE
        The folder to make, or an address on object storage (s3://bucket/a.store): made in a
        temporary folder, and copied there.

    Data
    ----
    features : D >= 1
        Number of columns, if it is publicly known. Default: the largest column in the data.
    indices : NAME
        Tables: a column of lists of column numbers, from 0, in place of --schema.
    values : NAME
        A column of lists of their values. Default: all 1.

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
    dplasso convert words.parquet words.store --indices words
    dplasso convert 'part-*.svm.gz' stores/ --features 1000000 --cluster auto
    dplasso convert 'part-*.svm.gz' s3://bucket/stores/ --features 1000000 --cluster auto

    A fit from a store reads no text, and keeps in memory only what grows with the number of rows
    and of columns. A store needs about 8 bytes of disk per entry (4 where all values are 1).
    """
    label_column = reading.label_column or "label"
    read = {"label_column": label_column, "n_features": features, **reading.of_rows()}
    encoding = _encoding(data, features, reading, indices, values)
    reading.dialect.say(expand(data))
    settings: dict[str, Any] = {"memory": parse_memory(memory), "force": force}
    if cluster.cluster is not None:
        if encoding is None and features is None:
            raise typer.BadParameter(
                "--cluster needs --features D: the number of columns, which all stores must share"
            )
        return _convert_each(data, store, encoding, read, settings, cluster)
    _check_place(store, force=force)
    started = time.perf_counter()
    with output.progress_bars() as bars, _made(store) as place, bars.task("reading") as progress:
        records = encode_files(data, encoding, person_column=person_column, **read)
        written = write_store(
            records.source, place, origin=records.origin, progress=progress, **settings
        )
        report = describe(written)
    report["seconds"] = time.perf_counter() - started
    public = records.public
    if public is None and features is None:
        public = (
            f"The number of columns ({report['n_features']:,}) is treated as public; if it "
            "came from the data alone, declare it with --features."
        )
    away = " --cluster threads" if is_address(store) else ""
    train = f"train on it: dplasso fit {store} --epsilon 1 --model model.npz{away}"
    show = partial(print_made, {"store": store}, report, train, public)
    return output.Result(report | {"public": public}, show)


def _encoding(
    data: list[str],
    n_features: int | None,
    reading: ReadingOptions,
    indices: str | None,
    values: str | None,
) -> Schema | ListColumns | None:
    """Return how tables are encoded, None for other data; refuse options that would be ignored."""
    if not is_table(data[0]):
        tables = {"--indices": indices, "--values": values, "--schema": reading.schema}
        refuse(tables | {"--label-column": reading.label_column}, "is for tables: leave it out")
        return None
    others = {"--zero-based": reading.zero_based, "--labels": reading.labels}
    refuse(others, "is not for tables: leave it out")
    if (indices is None) == (reading.schema is None):
        raise typer.BadParameter(
            f"{data[0]} is a table: give --schema FILE, or --indices NAME if a column holds lists "
            "of column numbers"
        )
    if indices is not None:
        need_pyarrow()
        return ListColumns(indices, values, n_features)
    refuse({"--values": values}, "needs --indices")
    refuse({"--features": n_features}, "is not for a schema, which declares its columns")
    return reading.declared()


@contextmanager
def _made(store: str) -> Iterator[Path]:
    """Yield where to make a store; one on object storage is made in a temporary folder."""
    if not is_address(store):
        yield Path(store)
        return
    with TemporaryDirectory(prefix="dplasso-") as made:
        place = Path(made) / "made.store"
        yield place
        put_store(place, store)


def _convert_each(
    data: list[str],
    folder: str,
    encoding: Schema | ListColumns | None,
    read: Mapping[str, Any],
    settings: dict[str, Any],
    cluster: ClusterOptions,
) -> output.Result:
    """Convert every file to a store of its own in a folder, each by a task."""
    away = is_address(folder)
    if not away and is_store(Path(folder)):
        raise DataError(f"{folder} is a store; with --cluster give a folder for many")
    files = expand(data)
    # A store has the name of its file up to the first dot.
    names = [f"{path.name.partition('.')[0]}.store" for path in files]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"two files would both make {twice}: give them different names")
    inside = folder.rstrip("/") if away else str(Path(folder).absolute())
    places = [f"{inside}/{name}" for name in names]
    if not away:
        make_folder(Path(folder))
    for place in places:
        _check_place(place, force=settings["force"])
    pieces = [
        (path.absolute(), place, encoding, read, settings)
        for path, place in zip(files, places, strict=True)
    ]
    with output.progress_bars() as bars:
        done = cluster.run(f"converting {len(files)} files", bars, convert_file, pieces)
    report = {
        "stores": places,
        "n_features": done[0]["n_features"],
        **{name: sum(made[name] for made in done) for name in ("n_samples", "nnz", "bytes")},
    }
    facts = {"stores": f"{len(places)} in {folder}"}
    train = (
        f"train on them: dplasso fit {folder} --cluster {cluster.cluster} --epsilon 1 "
        "--model model.npz"
    )
    return output.Result(report, partial(print_made, facts, report, train))


def convert_file(
    path: Path, store: str, encoding: Any, read: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Any]:
    """Convert one file to a store, and describe it."""
    records = encode_files([str(path)], encoding, **read)
    with _made(store) as place:
        return describe(write_store(records.source, place, origin=records.origin, **settings))


def print_made(made: Mapping[str, str], report: Mapping[str, Any], *more: str | None) -> None:
    """Print what was made, its size, and more sentences."""
    facts = {**made, "data": output.data_text(report), "size": f"{report['bytes']:,} bytes"}
    if "seconds" in report:
        facts["seconds"] = f"{report['seconds']:.2f}"
    output.facts(facts)
    for sentence in more:
        if sentence is not None:
            output.text(sentence)


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
    origin = ", ".join(f"{key}: {value}" for key, value in (report["origin"] or {}).items())
    facts = {
        "store": f"{report['path']} (format {report['version']}, {report['written_by']})",
        "source": str(report["source"]),
        "rows": f"{report['n_samples']:,}",
        "columns": f"{report['n_features']:,}",
        "entries": f"{report['nnz']:,}",
        "values": values,
        "labels": ", ".join(f"{label!r}: {count:,}" for label, count in report["labels"]),
        "size": f"{report['bytes']:,} bytes",
        **({"origin": origin} if origin else {}),
        "checksums": "all checksums match" if verify else "entries not verified (use --verify)",
    }
    return output.Result(report | {"verified": verify}, partial(output.facts, facts))
