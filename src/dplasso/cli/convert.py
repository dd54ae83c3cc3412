"""``dplasso convert``: data files to a store, for data larger than memory and for fast starts."""

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dplasso.cli import output
from dplasso.cli.clusters import ClusterOptions, store_name
from dplasso.cli.encodings import EncodingOptions
from dplasso.cli.reading import ReadingOptions
from dplasso.errors import DataError

if TYPE_CHECKING:
    from dplasso.data.blocks import BlockSource

_ROWS_LOOKED_AT = 2_000
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
        self, source: "BlockSource", bars: output.Bars, origin: Mapping[str, Any] | None
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
            output.document(report)
            return
        facts = {"store": str(self.place), "data": output.data_text(report)}
        facts["size"] = f"{report['bytes']:,} bytes"
        output.facts(facts | {"seconds": f"{report['seconds']:.2f}"})


def new_store(place: Path, options: StoreOptions) -> NewStore:
    """Find out now whether a store can be made there, and as the options say."""
    from dplasso.data.store.place import check_place

    memory = parse_memory(options.memory)
    check_place(place.absolute(), force=options.force)
    return NewStore(place, options, memory, time.perf_counter())


def convert(
    data: list[str],
    store: str,
    *,
    features: int | None = None,
    person_column: str | None = None,
    reading: ReadingOptions,
    encoding: EncodingOptions,
    making: StoreOptions,
    cluster: ClusterOptions,
) -> None:
    """Convert data files to a store on disk, in bounded memory; with --cluster each to its own.

    Arguments
    ---------
    data : DATA...
        One or more files of one data set, or a quoted pattern: svmlight text (plain, .gz, .bz2,
        .xz, .zst), scipy sparse .npz, or tables (CSV, JSON lines, Parquet, Arrow).
    store : STORE
        The folder to make.

    Data
    ----
    features : D >= 1
        Number of columns, as public knowledge. Default: the largest column in the data.

    Examples
    --------
    dplasso convert train.svm.gz train.store
    dplasso convert day_*.svm url.store --memory 4GB
    dplasso convert train.svm train.store --features 1000000 --binarize --force
    dplasso convert visits.parquet visits.store --schema schema.json
    dplasso convert --text reviews.csv reviews.store --text-column body --label-column y --ngrams
        1,2 --binary
    dplasso convert clicks.parquet clicks.store --hash-columns site,device --hash-bits 22
    dplasso convert 'part-*.svm.gz' stores/ --features 1000000 --cluster auto

    The store holds the records by rows and by columns, so that a fit starts at once and keeps in
    memory only what grows with the number of rows and of columns. It needs about 16 bytes of disk
    per entry (8 where all values are 1), and 4 more while it is made.
    """
    from dplasso.data.source_files import is_address
    from dplasso.encoding.files import encode_files

    if is_address(store):
        raise typer.BadParameter(
            "stores are made in folders; make this one in a folder, and copy that to object storage"
        )
    read: dict[str, Any] = {
        "label_column": reading.label_column or "label",
        "n_features": features,
        "zero_based": reading.zero_based,
        "labels_path": reading.labels,
        "label_map": reading.meaning(),
        "binarize": reading.binarize,
    }
    place, chosen = Path(store), encoding.encoding(data, features, reading)
    if cluster.cluster is not None:
        if chosen is None and features is None:
            raise typer.BadParameter(
                "--cluster needs --features D: the number of columns, which all stores must share"
            )
        _convert_each(data, place, chosen, read, making, cluster)
        return
    new = new_store(place, making)
    if encoding.hash_columns is not None:
        _warn_of_numbers(data, encoding.hash_columns)
    with output.progress_bars() as bars:
        records = encode_files(data, chosen, person_column=person_column, **read)
        report = new.write(records.source, bars, records.origin)
    public = records.public
    if public is None and features is None:
        public = (
            f"The number of columns ({report['n_features']:,}) is treated as public; if it "
            "came from the data alone, declare it with --features."
        )
    new.report(report | {"public": public})
    if not making.as_json:
        output.text(f"train on it: dplasso fit {store} --epsilon 1")
        if public is not None:
            output.text(public)


def _warn_of_numbers(data: list[str], columns: str) -> None:
    """Say on the curator's screen if a column of many numbers is to be hashed."""
    from dplasso.data.source_files import expand
    from dplasso.encoding.parts import Bins
    from dplasso.encoding.source import first_rows
    from dplasso.encoding.suggest import draft_part

    table = first_rows(expand(data)[0], _ROWS_LOOKED_AT)
    for name in (name.strip() for name in columns.split(",")):
        if name in table.column_names and isinstance(draft_part(name, table.column(name)), Bins):
            output.note(
                f"column {name!r} holds numbers: hashed, each becomes a category of its own, "
                "and 34 has nothing in common with 35; bins of a schema put them in public "
                "ranges (dplasso schema draft). This remark comes from looking at the "
                "records: it is for you, not for release.",
                style="yellow",
            )


def _convert_each(
    data: list[str],
    folder: Path,
    chosen: Any,
    read: Mapping[str, Any],
    making: StoreOptions,
    cluster: ClusterOptions,
) -> None:
    """Convert every file to a store of its own in a folder, each by a task."""
    from dplasso.cluster.tasks import run_tasks
    from dplasso.data.source_files import expand
    from dplasso.data.store.place import check_place
    from dplasso.data.store.reader import is_store

    if is_store(folder):
        raise DataError(f"{folder} is a store; with --cluster give a folder for many")
    files, memory = expand(data), parse_memory(making.memory)
    places = [folder.absolute() / store_name(path) for path in files]
    if len(set(places)) < len(places):
        twice = next(place for place in places if places.count(place) > 1)
        raise DataError(f"two files would make {twice.name}: give them names of their own")
    folder.mkdir(exist_ok=True)
    for place in places:
        check_place(place, force=making.force)
    assert cluster.cluster is not None
    settings = {"memory": memory, "force": making.force, "n_threads": cluster.worker_threads}
    pieces = [
        (path.absolute(), place, chosen, read, settings)
        for path, place in zip(files, places, strict=True)
    ]
    with output.progress_bars() as bars, bars.task(f"converting {len(files)} files") as progress:
        done = run_tasks(
            cluster.cluster, convert_file, pieces, progress, threads=cluster.worker_threads
        )
    report = {
        "stores": [str(place) for place in places],
        "n_features": done[0]["n_features"],
        **{name: sum(one[name] for one in done) for name in ("n_samples", "nnz", "bytes")},
    }
    if making.as_json:
        output.document(report)
        return
    facts = {"stores": f"{len(places)} in {folder}", "data": output.data_text(report)}
    output.facts(facts | {"size": f"{report['bytes']:,} bytes"})
    output.text(f"train on them: dplasso fit {folder} --cluster {cluster.cluster} --epsilon 1")


def convert_file(
    path: Path, place: Path, chosen: Any, read: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Any]:
    """Convert one file to a store, and describe it."""
    from dplasso.data.store import describe, write_store
    from dplasso.encoding.files import encode_files

    records = encode_files([str(path)], chosen, **read)
    return describe(write_store(records.source, place, origin=records.origin, **settings))
