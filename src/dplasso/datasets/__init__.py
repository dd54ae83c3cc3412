"""UCI Adult, packaged: 123 named one-hot columns, and all their crosses.

Fourteen attributes of a census record make one block of columns each, of which a record has at most
one. Names and crosses are public: products of values of different attributes, over the whole domain
and numbered by a formula, so no column depends on any record.
"""

from importlib.resources import as_file, files
from itertools import combinations
from math import comb
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.data.formats import Dataset, read_data

_FILES = {"train": "a9a.svm.gz", "test": "a9a_t.svm.gz"}
# fmt: off
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "age": ("=17-25", "=26-32", "=33-40", "=41-49", ">=50"),
    "workclass": (
        "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov",
        "Without-pay", "Never-worked"),
    "fnlwgt": tuple(f" in fifth {fifth} of 5" for fifth in range(1, 6)),
    "education": (
        "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc",
        "9th", "7th-8th", "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th",
        "Preschool"),
    "education-num": ("=1-8", "=9", "=10", "=11-12", "=13-16"),
    "marital-status": (
        "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
        "Married-spouse-absent", "Married-AF-spouse"),
    "occupation": (
        "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial",
        "Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical",
        "Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv",
        "Armed-Forces"),
    "relationship": (
        "Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Female", "Male"),
    "capital-gain": ("=0", ">0"),
    "capital-loss": ("=0", ">0"),
    "hours-per-week": ("=1-34", "=35-39", "=40", "=41-47", ">=48"),
    "native-country": (
        "United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany",
        "Outlying-US(Guam-USVI-etc)", "India", "Japan", "Greece", "South", "China", "Cuba",
        "Iran", "Honduras", "Philippines", "Italy", "Poland", "Jamaica", "Vietnam", "Mexico",
        "Portugal", "Ireland", "France", "Dominican-Republic", "Laos", "Ecuador", "Taiwan",
        "Haiti", "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand",
        "Yugoslavia", "El-Salvador", "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands"),
}
# fmt: on
"""Attribute to its values, in column order; a value that starts with a sign follows the
attribute's name as it is, any other after ``=``."""


FEATURE_NAMES: tuple[str, ...] = tuple(
    attribute + ("" if value[0] in "=> " else "=") + value
    for attribute, values in ATTRIBUTES.items()
    for value in values
)
"""The names of the 123 columns."""

N_FEATURES = len(FEATURE_NAMES)
_SIZES = np.array([len(values) for values in ATTRIBUTES.values()], np.int64)
_FIRST = np.concatenate(([0], np.cumsum(_SIZES)[:-1]))
_ATTRIBUTE = np.repeat(np.arange(_SIZES.size), _SIZES)
_MAX_ORDER = 3


def _cross_blocks() -> tuple[list[tuple[int, ...]], NDArray[np.int64], NDArray[np.int64]]:
    """Return the attributes of each block of crosses, its first column, and these as a table."""
    n = _SIZES.size
    blocks = [pick for order in range(1, _MAX_ORDER + 1) for pick in combinations(range(n), order)]
    lengths = [int(np.prod(_SIZES[list(pick)])) for pick in blocks]
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    table = np.full((n + 1, n + 1, n + 1), -1, np.int64)
    for start, pick in zip(starts[:-1].tolist(), blocks, strict=True):
        table[tuple(pick) + (n,) * (_MAX_ORDER - len(pick))] = start
    return blocks, starts, table


_BLOCKS, _STARTS, _TABLE = _cross_blocks()


def n_crosses(order: int = 3) -> int:
    """Return the number of crosses of up to `order` attributes: 123, 6,478 or 193,681."""
    if order not in range(1, _MAX_ORDER + 1):
        raise ValueError(f"order must be 1, 2 or 3, not {order!r}")
    last = max(k for k, pick in enumerate(_BLOCKS) if len(pick) == order)
    return int(_STARTS[last + 1])


def load_adult(part: Literal["train", "test"] = "train") -> Dataset:
    """Load the packaged UCI Adult: 123 binary columns, labels -1 (at most 50K a year) and +1.

    "train" has 32,560 records, "test" 16,281. ``X`` is float32, ``y`` float64. An attribute that a
    record does not give (workclass, occupation, native-country) has no column.
    """
    if part not in _FILES:
        raise ValueError(f"part must be 'train' or 'test', not {part!r}")
    with as_file(files("dplasso.datasets") / "adult" / _FILES[part]) as path:
        data = read_data(path, n_features=N_FEATURES)
    return Dataset(data.X, data.y, f"UCI Adult, {part}")


def crosses(X: csr_array, order: int = 3) -> csr_array:
    """Multiply Adult's columns: all crosses of up to `order` different attributes.

    Column k stands for the values in ``cross_name(k)``; columns up to a lower order are the same.
    `X` comes from `load_adult`; anything but zeros and ones, or two columns of an attribute, raises
    `ValueError`.
    """
    n_columns = n_crosses(order)
    X = csr_array(X)
    if X.shape[1] != N_FEATURES:
        raise ValueError(f"X has {X.shape[1]} columns, UCI Adult has {N_FEATURES}")
    if not np.isin(X.data, (0, 1)).all():
        raise ValueError("X must hold zeros and ones only")
    if not (X.has_canonical_format and X.data.all()):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    attribute = _ATTRIBUTE[X.indices]
    repeated = np.flatnonzero(attribute[1:] == attribute[:-1]) + 1
    repeated = np.setdiff1d(repeated, X.indptr)
    if repeated.size:
        row = int(np.searchsorted(X.indptr, repeated[0], side="right")) - 1
        raise ValueError(f"row {row} has two values of {list(ATTRIBUTES)[attribute[repeated[0]]]}")
    counts = np.diff(X.indptr)
    n_picks = [sum(comb(n, size) for size in range(1, order + 1)) for n in range(_SIZES.size + 1)]
    indptr = np.concatenate(([0], np.cumsum(np.array(n_picks)[counts])))
    indices = np.empty(indptr[-1], np.int32 if indptr[-1] < 2**31 else np.int64)
    # Rows with as many columns have the same picks of these, which are ascending like the crosses.
    for count in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == count)
        columns = X.indices[X.indptr[rows] + np.arange(count)[:, np.newaxis]]
        picks = (pick for size in range(1, order + 1) for pick in combinations(columns, size))
        for place, pick in enumerate(picks):
            indices[indptr[rows] + place] = _numbers_of_crosses(pick)
    ones = np.ones(indices.size, np.float32)
    result = csr_array((ones, indices, indptr.astype(indices.dtype)), shape=(X.shape[0], n_columns))
    result.has_canonical_format = True
    return result


def _numbers_of_crosses(pick: tuple[NDArray[Any], ...]) -> NDArray[np.int64]:
    """Return the number of the cross of some columns in each row."""
    attributes = [_ATTRIBUTE[columns] for columns in pick]
    number: Any = 0
    for attribute, columns in zip(attributes, pick, strict=True):
        number = number * _SIZES[attribute] + columns - _FIRST[attribute]
    starts = _TABLE[(*attributes, *[_SIZES.size] * (_MAX_ORDER - len(pick)))]
    return np.asarray(starts + number)


def cross_name(column: int) -> str:
    """Name a column of `crosses`, such as ``education=Bachelors & sex=Male``."""
    if not 0 <= column < _STARTS[-1]:
        raise ValueError(f"column must be from 0 to {_STARTS[-1] - 1}, not {column}")
    block = int(np.searchsorted(_STARTS, column, side="right")) - 1
    rest = int(column - _STARTS[block])
    names = []
    for attribute in reversed(_BLOCKS[block]):
        rest, value = divmod(rest, int(_SIZES[attribute]))
        names.append(FEATURE_NAMES[_FIRST[attribute] + value])
    return " & ".join(reversed(names))
