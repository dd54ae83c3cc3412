"""Data that cannot be used are refused in words that quote no record.

scikit-learn, numpy, pandas and other people's models put the entry that they cannot read, or the
whole array, into their messages; and messages end in logs.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from dplasso.errors import DataError, MissingExtraError

# What scikit-learn and numpy say of shapes, types, names of columns, and what is missing.
_WITHOUT_ENTRIES = re.compile(
    "|".join(
        (
            r"Input (\w+ )?contains ",
            r"Found (array with|input variables) ",
            r"X has \d",
            r"Sparse |Only sparse matrices ",
            r"The feature names should ",
            r"Expected (2D array, got (1D|scalar) array instead|sequence or array-like)",
            r"setting an array element|float\(\) argument must be",
            r"Complex data not supported|dtype='numeric'",
            r"y should be a 1d array|This \w+ estimator requires|Unknown label type: [\w-]+\.",
        )
    )
)
_RESHAPE = (
    "Reshape your data: array.reshape(-1, 1) if it has one column, array.reshape(1, -1) if it is "
    "one row"
)


@contextmanager
def in_our_words(X: Any = None) -> Iterator[None]:
    """Word a refusal of rows, or of labels alone: it says where, and quotes none of them."""
    try:
        # The search for NaN adds everything up: a sum that overflows is no matter for a warning.
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except (DataError, MissingExtraError, MemoryError):
        raise
    except Exception as error:
        message = str(error)
        if not _WITHOUT_ENTRIES.match(message):
            raise DataError(_what_is_wrong(X, error)) from None
        if "contains NaN" in message:
            # What follows recommends models that are not private.
            cure = (
                "every row needs a label"
                if message.startswith("Input y")
                else "a missing value needs a place of its own; encode the table by a schema "
                "(PublicEncoder), or put a public number there"
            )
            message = message.splitlines()[0].rstrip(".:") + f": {cure}"
        if message.startswith(("Expected 2D", "Complex")):
            # What follows is the array.
            hint = f". {_RESHAPE}" if message.startswith("Expected") else ": give real numbers"
            message = re.split(r"[:\n]", message)[0] + hint
        kind = TypeError if isinstance(error, TypeError) else DataError
        raise kind(message) from None


def is_ours(model: Any) -> bool:
    """Return whether a model, or a step of a pipeline, is of this package."""
    return type(model).__module__.startswith("dplasso.")


@contextmanager
def of_a_stranger(model: Any) -> Iterator[None]:
    """Hide what a model that is not of this package says of rows; ours quote none."""
    try:
        yield
    except Exception as error:
        if is_ours(model) or isinstance(error, MemoryError | DataError):
            raise
        raise DataError(
            f"{type(model).__name__} cannot take these rows: it raises {type(error).__name__}, "
            "whose message may quote a record and is not shown"
        ) from None


def _what_is_wrong(X: Any, error: Exception) -> str:
    if X is None:
        return f"y does not hold labels of one kind ({type(error).__name__})"
    place = _place(X)
    if not place:
        return f"X and y are not rows of numbers and their labels ({type(error).__name__})"
    return f"X holds something that is not a number in {place} (from 0); give numbers only"


def _place(X: Any) -> str:
    """Say where the first entry stands that is no number; empty if there is none."""
    if sp.issparse(X):
        matrix: Any = X
        entries = matrix.tocoo()
        rows, columns, values = entries.row, entries.col, entries.data
    else:
        try:
            table = np.asarray(X, dtype=object)
        except Exception:
            return ""
        rows, *others = np.unravel_index(np.arange(table.size), table.shape or (1,))
        columns, values = others[0] if len(others) == 1 else None, table.ravel()
    for place, value in enumerate(values):
        try:
            float(value)
        except Exception:
            row = f"row {rows[place]:,}"
            return row if columns is None else f"{row}, column {columns[place]:,}"
    return ""
