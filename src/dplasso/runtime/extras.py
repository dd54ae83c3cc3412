"""Packages that only a part of the work needs."""

import sys
from importlib.util import find_spec

from dplasso.errors import MissingExtraError

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
