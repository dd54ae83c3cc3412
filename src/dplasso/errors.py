"""The exceptions and warnings a user of the package can meet."""

import re
import reprlib
import sys
from collections.abc import Callable
from importlib.util import find_spec

# A parameter that a message names: `name` or `name=value`.
_MARK = re.compile(r"`([a-z_A-Z]\w*)(?:=([^`]*))?`")


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
        told = f"{begun}; {self.advice}" if self.advice else begun
        return _MARK.sub(lambda mark: called(mark[1], mark[2]), told)


class ParameterError(Explained, ValueError):
    """A parameter that is out of range, or does not go with another."""


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
    """A budget ledger that cannot be used, or not as asked; nothing was spent."""


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
    """Return a parameter's value, shortened, in one line of a message."""
    return " ".join(reprlib.repr(value).split())


EXTRAS = {
    "fsspec": "storage",
    "matplotlib": "plot",
    "onnx": "onnx",
    "skl2onnx": "onnx",
    "zstandard": "zstd",
}
"""The extra of this package that brings each of them."""


def missing(module: str, purpose: str) -> str:
    """Return the sentence, begun by the purpose, that a module of `EXTRAS` is missing, or ""."""
    # Among the modules stands None where an import is forbidden.
    if (sys.modules[module] if module in sys.modules else find_spec(module)) is not None:
        return ""
    how = f"pip install 'dplasso[{EXTRAS[module]}]'"
    return f"{purpose} needs {module}, which is not installed: {how}"


def need(module: str, purpose: str) -> None:
    """Raise MissingExtraError with the sentence of `missing`, if there is one."""
    if sentence := missing(module, purpose):
        raise MissingExtraError(sentence)
