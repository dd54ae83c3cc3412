"""UCI Adult, packaged: 123 named one-hot columns, and all their crosses.

Fourteen attributes of a census record make one block of columns each, of which a record has at most
one. Names and crosses are public: products of values of different attributes, over the whole domain
and numbered by a formula, so no column depends on any record.
"""

from importlib.resources import as_file, files
from itertools import combinations
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from dplasso.data.formats import Dataset, read_data
from dplasso.encoding.contract import indicators

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
# The attributes of each block of crosses, and its first column.
_BLOCKS = [
    pick for order in range(1, _MAX_ORDER + 1) for pick in combinations(range(_SIZES.size), order)
]
_STARTS = np.cumsum([0, *(np.prod(_SIZES[list(pick)]) for pick in _BLOCKS)])


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
    if order not in range(1, _MAX_ORDER + 1):
        raise ValueError(f"order must be 1, 2 or 3, not {order!r}")
    blocks = [pick for pick in _BLOCKS if len(pick) <= order]
    X = csr_array(X, copy=True)
    if X.shape[1] != N_FEATURES:
        raise ValueError(f"X has {X.shape[1]} columns, UCI Adult has {N_FEATURES}")
    if not np.isin(X.data, (0, 1)).all():
        raise ValueError("X must hold zeros and ones only")
    X.sum_duplicates()
    X.eliminate_zeros()
    rows, attributes = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), _ATTRIBUTE[X.indices]
    # Of each row, the number of the value of each attribute; -1 for none.
    values = np.full((X.shape[0], _SIZES.size), -1)
    values[rows, attributes] = X.indices - _FIRST[attributes]
    places = rows * _SIZES.size + attributes
    twice = np.bincount(places, minlength=1) > 1
    if twice.any():
        row, attribute = divmod(int(twice.argmax()), _SIZES.size)
        raise ValueError(f"row {row} has two values of {list(ATTRIBUTES)[attribute]}")
    numbers = np.empty((X.shape[0], len(blocks)), np.int32)
    for block, pick in enumerate(blocks):
        own = values[:, pick]
        crossed = np.ravel_multi_index([*own.T], _SIZES[list(pick)], mode="clip")
        numbers[:, block] = np.where((own < 0).any(axis=1), -1, _STARTS[block] + crossed)
    return indicators(numbers, int(_STARTS[len(blocks)]))


def cross_name(column: int) -> str:
    """Name a column of `crosses`, such as ``education=Bachelors & sex=Male``."""
    if not 0 <= column < _STARTS[-1]:
        raise ValueError(f"column must be from 0 to {_STARTS[-1] - 1}, not {column}")
    block = int(np.searchsorted(_STARTS, column, side="right")) - 1
    pick = _BLOCKS[block]
    values = np.unravel_index(column - _STARTS[block], _SIZES[list(pick)])
    names = (FEATURE_NAMES[_FIRST[k] + value] for k, value in zip(pick, values, strict=True))
    return " & ".join(names)
