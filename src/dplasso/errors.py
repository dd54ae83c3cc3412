"""The exceptions and warnings a user of the package can meet, in messages that quote no record.

scikit-learn, numpy, pandas and third-party models quote the entry that they cannot read, or the
whole array, in their messages. Messages end up in logs, so such ones are replaced.
"""

import re
import reprlib
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from numbers import Number
from typing import Any

# A parameter that a message names: `name` or `name=value`.
_MARK = re.compile(r"`([a-z_A-Z]\w*)(?:=([^`]*))?`")
# Messages of scikit-learn and numpy that quote no entry: shapes, types, names, missing values.
_WITHOUT_ENTRIES = re.compile(
    "|".join(
        (
            r"Input (\w+ )?contains ",
            r"Found (array with|input variables) ",
            r"X has \d",
            r"Sparse |Only sparse matrices ",
            r"(The feature names should|Feature names are only supported) ",
            r"Expected (2D array, got (1D|scalar) array instead|sequence or array-like)",
            r"setting an array element|float\(\) argument must be",
            r"Complex data not supported|dtype='numeric'|np\.matrix is not supported",
            r"y should be a 1d array|This \w+ estimator requires|Unknown label type: [\w-]+\.",
        )
    )
)
_RESHAPE = (
    "Reshape your data: array.reshape(-1, 1) if it has one column, array.reshape(1, -1) if it is "
    "one row"
)


def _as_in_python(name: str, value: str | None) -> str:
    return name if value is None else f"{name}={value}"


class Explained(Exception):  # noqa: N818
    """What is wrong, where, and what to do, kept apart.

    In `problem` and `advice` a parameter stands in backticks, as `name` or as `name=value`. Python
    prints a sentence with these names; the command line prints it with those of its options.

    Parameters
    ----------
    problem : str
        What is wrong.
    where : str, default=""
        The file, line or column that it is about.
    advice : str, default=""
        What to do.

    Attributes
    ----------
    problem, where, advice : str
        As given.
    """

    def __init__(self, problem: str = "", *, where: str = "", advice: str = "") -> None:
        self.problem, self.where, self.advice = problem, where, advice
        super().__init__(self.sentence())

    @property
    def parameter(self) -> str | None:
        """The first parameter that the message names."""
        named = _MARK.search(self.problem) or _MARK.search(self.advice)
        return named and named[1]

    def sentence(self, called: Callable[[str, str | None], str] = _as_in_python) -> str:
        """Return the message; ``called(name, value)`` says how a parameter is called."""
        begun = f"{self.where}: {self.problem}" if self.where else self.problem
        sentence = f"{begun}; {self.advice}" if self.advice else begun
        return _MARK.sub(lambda mark: called(mark[1], mark[2]), sentence)


class ParameterError(Explained, ValueError):
    """A parameter that is out of range, or cannot be combined with another one."""


class ParameterTypeError(Explained, TypeError):
    """A parameter that is not of its kind."""


class DataError(Explained, ValueError):
    """Input data that cannot be used; the message names file and line where there are any."""


class StoreError(DataError):
    """A folder that is not a complete, undamaged store of a known version."""


class ModelFileError(ValueError):
    """A file that is not a complete, undamaged dplasso model of a known version."""


class CheckpointError(Explained, ValueError):
    """A checkpoint that cannot be resumed: damaged, of another fit, finished, or in use."""


class LedgerError(Explained, ValueError):
    """A budget ledger that cannot be used, or not as asked; what was charged stays spent."""


class BudgetError(LedgerError):
    """A fit that would spend more than a ledger has left; nothing was spent."""


class MissingExtraError(ImportError):
    """A package that this piece of work needs is not installed; the message says how to get it."""


class LedgerWarning(RuntimeWarning):
    """A fit was charged, but the ledger could not record that it ended."""


class WeakPrivacyWarning(RuntimeWarning):
    """An epsilon or a delta so large that the guarantee is weak."""


class PrivacyLeakWarning(WeakPrivacyWarning):
    """A fit that is not private, whatever epsilon says, or that shows values of the records.

    Such values are class labels that nobody declared, and names of columns.
    """


class NoiseWarning(RuntimeWarning):
    """Too few records, or too small an epsilon, for a fit to find more than noise."""


class ClusterError(RuntimeError):
    """Workers that cannot be reached, or were lost; what was drawn is in the fit's checkpoint."""


def shown(value: object) -> str:
    """Return a parameter's value for a message: up to four numbers or short texts, or its type.

    Anything larger may be records, passed by mistake.
    """
    several = value if isinstance(value, list | tuple) else [value]
    single = (
        isinstance(e, Number | None) or (isinstance(e, str) and len(e) <= 40) for e in several
    )
    if len(several) <= 4 and all(single):
        return " ".join(reprlib.repr(value).split())
    shape = getattr(value, "shape", None)
    return f"an object of type {type(value).__name__}" + (f" of shape {shape}" if shape else "")


EXTRAS = {
    "fsspec": "storage",
    "matplotlib": "plot",
    "onnx": "onnx",
    "pyarrow": "arrow",
    "skl2onnx": "onnx",
}
"""The extra of this package that brings each of them."""


def need(module: str, purpose: str) -> None:
    """Raise MissingExtraError if a module of `EXTRAS` is missing; the sentence names `purpose`."""
    # Among the modules stands None where an import is forbidden.
    if (sys.modules[module] if module in sys.modules else find_spec(module)) is None:
        how = f"pip install 'dplasso[{EXTRAS[module]}]'"
        raise MissingExtraError(f"{purpose} needs {module}, which is not installed: {how}")


@contextmanager
def in_our_words(X: Any = None) -> Iterator[None]:
    """Replace messages about X, or about labels, by ones that give the place and quote nothing.

    NaN is looked for even if scikit-learn is set to assume that there is none.
    """
    import numpy as np
    from sklearn import config_context

    try:
        # The search for NaN sums all entries; an overflow there is not worth a warning.
        with np.errstate(over="ignore", invalid="ignore"), config_context(assume_finite=False):
            yield
    except (DataError, MissingExtraError, MemoryError):
        raise
    except Exception as error:
        message = str(error)
        if not _WITHOUT_ENTRIES.match(message):
            raise DataError(_what_is_wrong(X, error)) from None
        if "contains NaN" in message:
            # Of an array of objects, the message does not say that it is y.
            message = message.replace("Input contains", "Input y contains")
            # The rest of scikit-learn's message recommends models that are not private.
            cure = (
                "every row needs a label"
                if message.startswith("Input y")
                else "encode the table by a schema (PublicEncoder), which has a column for missing "
                "values, or replace them by a public number"
            )
            message = message.splitlines()[0].rstrip(".:") + f": {cure}"
        if message.startswith("Unknown label type: unknown"):
            message = "Unknown label type: give every row a label, all of one type"
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
    """Hide the warnings and error messages of a third-party model, because they tell of rows."""
    try:
        with warnings.catch_warnings():
            if not is_ours(model):
                # Of an overflow in a single row, for example.
                warnings.simplefilter("ignore")
            yield
    except Exception as error:
        if is_ours(model) or isinstance(error, MemoryError | DataError):
            raise
        raise DataError(
            f"{type(model).__name__} cannot take these rows: it raises {type(error).__name__}, "
            "whose message may quote a record and is hidden; check the columns and their types"
        ) from None


def _what_is_wrong(X: Any, error: Exception) -> str:
    kind = type(error).__name__
    if X is None:
        return f"y lacks a label or mixes types ({kind}); give every row a label, all of one type"
    place = _place(X)
    if not place:
        return f"X and y must be rows of numbers and a label for each ({kind})"
    return f"X holds a value that is not a number in {place} (from 0); pass numbers only"


def _place(X: Any) -> str:
    """Describe the place of the first non-numeric entry; empty if there is none."""
    import numpy as np
    import scipy.sparse as sp

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
