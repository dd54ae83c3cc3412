"""``dplasso convert``: data files to a store, for data larger than memory and for fast starts."""

from pathlib import Path
from typing import Annotated

from dplasso.cli import options
from dplasso.cli.encodings import EncodingOptions
from dplasso.cli.options import DATA, argument, option
from dplasso.cli.output import print_note, print_text, progress_bars
from dplasso.cli.reading import ReadingOptions
from dplasso.cli.stores import StoreOptions, new_store

EXAMPLES = options.examples(
    "dplasso convert train.svm.gz train.store",
    "dplasso convert day_*.svm url.store --memory 4GB",
    "dplasso convert train.svm train.store --features 1000000 --binarize --force",
    "dplasso convert visits.parquet visits.store --schema schema.json",
    "dplasso convert --text reviews.csv reviews.store --text-column body --label-column y "
    "--ngrams 1,2 --binary",
    "dplasso convert clicks.parquet clicks.store --hash-columns site,device --hash-bits 22",
    note="The store holds the records by rows and by columns, so that a fit starts at once and "
    "keeps in memory only what grows with the number of rows and of columns. It needs about 16 "
    "bytes of disk per non-zero (8 where all values are 1), and 4 more while it is made.",
)

_ROWS_LOOKED_AT = 2_000


def convert(
    data: Annotated[
        list[str],
        argument(
            "DATA...",
            "One or more files of one data set, or a quoted pattern: svmlight text (plain, "
            ".gz, .bz2, .xz, .zst), scipy sparse .npz, or tables (CSV, JSON lines, Parquet, "
            "Arrow).",
        ),
    ],
    store: Annotated[Path, argument("STORE", "The directory to make.")],
    *,
    features: Annotated[
        int | None,
        option(
            "--features",
            "Number of columns, as public knowledge. Default: the largest column in the data.",
            "D",
            DATA,
            min=1,
        ),
    ] = None,
    person_column: options.PersonColumn = None,
    reading: ReadingOptions,
    encoding: EncodingOptions,
    making: StoreOptions,
) -> None:
    """Convert data files to a store on disk, in bounded memory."""
    new = new_store(store, making)
    meaning = reading.meaning()
    chosen = encoding.encoding(data, features, reading)
    from dplasso.encoding.files import encode_files

    if encoding.hash_columns is not None:
        _warn_of_numbers(data, encoding.hash_columns)
    with progress_bars() as bars:
        records = encode_files(
            data,
            chosen,
            label_column=reading.label_column or "label",
            person_column=person_column,
            n_features=features,
            zero_based=reading.zero_based,
            labels_path=reading.labels,
            label_map=meaning,
            binarize=reading.binarize,
        )
        report = new.write(records.source, bars, records.origin)
    public = records.public
    if public is None and features is None:
        public = (
            f"The number of columns ({report['n_features']:,}) is treated as public; where the "
            "data alone told it, declare it with --features."
        )
    new.report(report | {"public": public})
    if not making.as_json:
        print_text(f"train on it: dplasso fit {store} --epsilon 1")
        if public is not None:
            print_text(public)


def _warn_of_numbers(data: list[str], columns: str) -> None:
    """Say on the curator's screen if a column of many numbers is to be hashed."""
    from dplasso.data.source_files import expand
    from dplasso.encoding.parts import Bins
    from dplasso.encoding.source import first_rows
    from dplasso.encoding.suggest import draft_part

    table = first_rows(expand(data)[0], _ROWS_LOOKED_AT)
    for name in (name.strip() for name in columns.split(",")):
        if name not in table.column_names:
            continue
        if isinstance(draft_part(name, table.column(name)), Bins):
            print_note(
                f"column {name!r} holds numbers: hashed, each becomes a category of its own, "
                "and 34 has nothing in common with 35; bins of a schema put them in public "
                "ranges (dplasso schema draft). This remark is from looking at the records: "
                "for you, no part of the release.",
                style="yellow",
            )
