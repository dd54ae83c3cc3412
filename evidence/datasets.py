"""Data sets: the paper's five by name, synthetic ones, files of one's own, Adult.

The package is imported late: planted bugs need a process that has not imported it.
"""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from evidence.known_weights import DRAWS, TEST_ROWS, TRUTHS, Known, known
from evidence.published import FILES, LIBSVM, NAMES, TABLE2, TITLES

# Bytes of svmlight text per entry, plain and compressed: good enough to foresee times.
_BYTES_PER_ENTRY = {"": 14, ".gz": 3.5, ".bz2": 3, ".xz": 3}


# The packaged ones: attributes in a cross, and about how many entries they have.
ADULT = {"adult": (1, 7e5), "adult-crosses": (3, 2.2e7)}


class UnavailableError(RuntimeError):
    """Something is not there on this machine; the report says so in the message's words."""


def _wrong(message: str) -> Exception:
    from dplasso.errors import DataError

    return DataError(message)


@dataclass(frozen=True)
class Source:
    """A data set that was asked for; nothing of it has been read."""

    label: str  # Its name in tables and file names
    kind: str  # Synthetic, file, store: where it comes from
    identity: dict[str, Any]  # JSON-safe; changes when the data would
    title: str  # What it is, for readers
    published: str | None  # The paper's data set to compare with
    entries: float  # About how many non-zeros it has, to foresee times
    # Read or generate it: X (csr_array) and labels 0 or 1 (int8).
    load: Callable[[], tuple[csr_array, NDArray[np.int8]]]
    own_test: int = 0  # Rows at the end that are the data's own part for testing
    # The log-odds of rows, where the weights that labels come from are known.
    true_margins: Callable[[csr_array], NDArray[np.float64]] | None = None


def find_sources(
    asked: Sequence[str], *, twin: bool, scale: float, seed: int, n_jobs: int
) -> list[Source]:
    """Return what ``--data`` means, before anything is computed.

    Each of `asked` is a name of the paper's data sets, ``NAME@SCALE`` for a synthetic one of
    another scale than `scale`, ``adult`` or ``adult-crosses``, which are packaged, ``zipf-dense@N``
    for N rows of known weights (`evidence.known_weights`), or the path of a file or store. Empty:
    all five, or those that are here. With `twin`, names are generated rather than looked for, by
    `seed`.

    Raises
    ------
    DataError
        If a name is not here, a path does not exist, or two have the same label.
    ValueError
        For a scale that is not a positive number.
    """
    if not asked:
        asked = NAMES if twin else [name for name in NAMES if find_real(name) is not None]
        if not asked:
            raise _wrong(
                "none of the paper's data sets is in this folder: name a file with --data PATH, "
                f"download {', '.join(FILES.values())} from {LIBSVM} to this folder, or generate "
                "all five with --twin"
            )
    found = [_source(spec, twin, scale, seed, n_jobs) for spec in asked]
    labels = [source.label for source in found]
    for label in labels:
        if labels.count(label) > 1:
            raise _wrong(f"--data names {label} twice; rename one of the files")
    return found


def find_real(name: str) -> Path | None:
    """Return where one of the paper's data sets is, or None.

    That is ``NAME.store`` or LIBSVM's file, in the current folder.
    """
    from dplasso.data.store import is_store

    store, file = Path(f"{name}.store"), Path(FILES[name])
    return store if is_store(store) else file if file.is_file() else None


def _source(spec: str, twin: bool, scale: float, seed: int, n_jobs: int) -> Source:
    name, _, own_scale = spec.partition("@")
    if name in NAMES:
        if own_scale:
            scale, twin = _scale(own_scale, spec), True
        if twin:
            return _synthetic(name, scale, seed, n_jobs)
        real = find_real(name)
        if real is None:
            raise _wrong(
                f"{name} is not in this folder: download {LIBSVM}{FILES[name]} to it, or give "
                "--twin for a generated data set of its shape"
            )
        return _from_path(real, name, name)
    if spec in ADULT:
        return _adult(spec)
    if name in TRUTHS:
        return known_source(known(name, own_scale, seed))
    path = Path(spec)
    if not path.exists():
        raise _wrong(
            f"--data {spec}: there is no such file or store, and the data sets known by name are "
            f"{', '.join((*NAMES, *ADULT, *TRUTHS))}"
        )
    label = path.name.split(".")[0]
    # news20_rebuilt stands beside the paper's News20.
    published = next((name for name in NAMES if label.startswith(name)), None)
    return _from_path(path, label, published)


def _scale(text: str, spec: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"--data {spec}: the scale after @ must be a positive number")
    return value


def _synthetic(name: str, scale: float, seed: int, n_jobs: int) -> Source:
    from evidence.twins.generate import make_synthetic
    from evidence.twins.plan import scaled_shape

    shape = scaled_shape(name, scale, None, None)

    def load() -> tuple[csr_array, NDArray[np.int8]]:
        made = make_synthetic(name, scale=scale, seed=seed, n_jobs=n_jobs)
        return made.X, (made.y > 0).astype(np.int8)

    part = "" if scale == 1.0 else f", {scale:g} of its rows and columns"
    return Source(
        label=f"{name}-twin",
        kind="synthetic",
        identity={"twin": name, "scale": scale, "seed": seed},
        title=f"twin of {TITLES[name]}{part}",
        published=name,
        entries=float(shape.n_nonzeros),
        load=load,
    )


def known_source(data: Known) -> Source:
    """Return records of known weights as a source."""
    name = next(name for name, truth in TRUTHS.items() if truth == data.truth)
    title = f"{data.n_rows:,} x {data.n_columns:,} Zipf columns, {data.truth.title}"
    return Source(
        label=f"{name}-{data.n_rows}",
        kind="synthetic",
        identity={"known": name, "rows": data.n_rows, "seed": data.seed},
        title=title,
        published=None,
        entries=float(DRAWS * data.n_rows),
        load=data.draw,
        own_test=TEST_ROWS,
        true_margins=data.margins,
    )


def _adult(name: str) -> Source:
    from dplasso.datasets import crosses, load_adult

    order, entries = ADULT[name]

    def load() -> tuple[csr_array, NDArray[np.int8]]:
        parts = [load_adult("train"), load_adult("test")]
        X = csr_array(vstack([part.X for part in parts], format="csr"))
        y = np.concatenate([part.y for part in parts])
        return X if order == 1 else crosses(X, order), (y > 0).astype(np.int8)

    title = "UCI Adult" if order == 1 else f"UCI Adult, all crosses of up to {order} attributes"
    identity = {"adult": order}
    return Source(name, "packaged", identity, title, None, entries, load, own_test=16_281)


def _from_path(path: Path, label: str, published: str | None) -> Source:
    from dplasso.data.store import is_store, open_store
    from dplasso.data.store.files import HEADER_FILE

    if path.is_dir():
        if not is_store(path):
            raise _wrong(f"{path}: a folder, but no store; dplasso convert makes one")
        store = open_store(path)
        return Source(
            label=label,
            kind="store",
            identity=_file_identity(path.name, (path / HEADER_FILE).stat()),
            title=TITLES.get(label, label),
            published=published,
            entries=float(store.nnz),
            load=lambda: _encoded(path.name, store.X.tocsr(), store.y),
        )
    status = path.stat()

    def load() -> tuple[csr_array, NDArray[np.int8]]:
        from dplasso.data.formats import read_data

        declared = TABLE2[label][1] if label in TABLE2 else None
        data = read_data(path, n_features=declared)
        return _encoded(path.name, data.X, data.y)

    return Source(
        label=label,
        kind="file",
        identity=_file_identity(path.name, status),
        title=TITLES.get(label, label),
        published=published,
        entries=status.st_size / _BYTES_PER_ENTRY.get(path.suffix, 14),
        load=load,
    )


def _file_identity(name: str, status: os.stat_result) -> dict[str, Any]:
    # The name, not the folder: results may be shown to others.
    return {"file": name, "bytes": status.st_size, "changed": status.st_mtime_ns}


def _encoded(name: str, X: csr_array, y: NDArray[Any]) -> tuple[csr_array, NDArray[np.int8]]:
    labels = np.unique(y)
    if labels.size != 2:
        raise _wrong(f"{name}: two different labels are needed, the data hold {labels.size}")
    return X, (y == labels[1]).astype(np.int8)


class DatasetCache:
    """Holds the data set in use, and only that one: the next one takes its place."""

    def __init__(self) -> None:
        self._held: tuple[Source, csr_array, NDArray[np.int8]] | None = None

    def take(self, source: Source) -> tuple[csr_array, NDArray[np.int8]]:
        """Return X and the labels of a data set."""
        if self._held is None or self._held[0] is not source:
            self._held = None
            self._held = (source, *source.load())
        return self._held[1], self._held[2]


def held_out(n_rows: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows for training and those for testing: a fifth, rounded up, drawn at random."""
    order = np.random.default_rng(seed).permutation(n_rows)
    n_test = -(-n_rows // 5)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


@dataclass(frozen=True)
class Spec:
    """A data set of ``benchmarks/config.toml``, which explains the entries."""

    name: str
    twin: str | None = None
    file: str | None = None
    adult: int = 0
    scale: float = 1.0
    n_rows: int | None = None
    n_columns: int | None = None
    seed: int = 0
    binary: bool = False
    paper: str | None = None
    repeats: int | None = None
    without: tuple[str, ...] = ()


def load_spec(spec: Spec, folder: Path | None, n_jobs: int) -> Any:
    """Make a `Dataset` or read it from `folder`; labels become 0 and 1 (int8).

    Raises
    ------
    UnavailableError
        If it is a file, and not there.
    """
    from dplasso.data.formats import read_data
    from dplasso.datasets import crosses, load_adult
    from evidence.twins.generate import make_synthetic

    if spec.twin is not None:
        size: dict[str, Any] = {
            "scale": spec.scale,
            "n_rows": spec.n_rows,
            "n_columns": spec.n_columns,
        }
        made = make_synthetic(spec.twin, seed=spec.seed, n_jobs=n_jobs, **size)
    elif spec.file is None:
        made = load_adult("train")
        if spec.adult > 1:
            made = replace(made, X=crosses(made.X, order=spec.adult))
        made = replace(made, source=f"UCI Adult, order {spec.adult}")
    elif folder is None:
        raise UnavailableError(f"{spec.file} is read only with --data FOLDER")
    elif not (folder / spec.file).exists():
        raise UnavailableError(f"{spec.file} is not in the folder given by --data")
    else:
        made = replace(read_data(folder / spec.file), source=spec.file)
    if spec.binary:
        made = replace(made, X=binarized(made.X), source=f"{made.source}, values set to 1")
    return replace(made, y=(np.asarray(made.y) > 0).astype(np.int8))


def binarized(X: Any) -> Any:
    """Return a copy of a matrix with all its non-zeros set to 1."""
    ones = X.copy()
    ones.eliminate_zeros()
    ones.data[:] = 1
    return ones


def describe(data: Any) -> dict[str, Any]:
    """Return the shape of a `Dataset`, JSON-safe."""
    rows, columns = data.X.shape
    return {"source": data.source, "rows": rows, "columns": columns, "nonzeros": int(data.X.nnz)}


def sizes(data: dict[str, Any]) -> str:
    """Return a shape as `describe` gives it for a table."""
    return f"{data['rows']:,} x {data['columns']:,}, {data['nonzeros']:,}"
