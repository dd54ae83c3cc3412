"""Replace error messages that may quote a record.

scikit-learn, numpy, pandas and third-party models quote the entry that they cannot read, or the
whole array, in their messages. Messages end up in logs.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from dplasso.errors import DataError, MissingExtraError

# Messages of scikit-learn and numpy that quote no entry: shapes, types, names, missing values.
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
    """Replace messages about X, or about labels, by ones that give the place and quote nothing."""
    try:
        # The search for NaN sums all entries; an overflow there is not worth a warning.
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except (DataError, MissingExtraError, MemoryError):
        raise
    except Exception as error:
        message = str(error)
        if not _WITHOUT_ENTRIES.match(message):
            raise DataError(_what_is_wrong(X, error)) from None
        if "contains NaN" in message:
            # The rest of scikit-learn's message recommends models that are not private.
            cure = (
                "every row needs a label"
                if message.startswith("Input y")
                else "encode the table by a schema (PublicEncoder), which has a column for missing "
                "values, or replace them by a public number"
            )
            message = message.splitlines()[0].rstrip(".:") + f": {cure}"
        if message.startswith(("Expected 2D", "Complex")):
            # The rest of the message quotes the array.
            hint = f". {_RESHAPE}" if message.startswith("Expected") else ": pass real numbers"
            message = re.split(r"[:\n]", message)[0] + hint
        kind = TypeError if isinstance(error, TypeError) else DataError
        raise kind(message) from None


def is_ours(model: Any) -> bool:
    """Return whether a model, or a step of a pipeline, is from this package."""
    return type(model).__module__.startswith("dplasso.")


@contextmanager
def of_a_stranger(model: Any) -> Iterator[None]:
    """Hide the error messages of a third-party model, because they may quote rows."""
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
        return f"y holds labels of different types ({type(error).__name__}); use one type"
    place = _place(X)
    if not place:
        return f"X and y must be rows of numbers and their labels ({type(error).__name__})"
    return f"X holds a value that is not a number in {place} (from 0); pass numbers only"


def _place(X: Any) -> str:
    """Describe the place of the first non-numeric entry; empty if there is none."""
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
