"""Packages that only a part of the work needs, and folders of the user's."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from dplasso.errors import MissingExtraError

EXTRAS = {
    "fsspec": "storage",
    "matplotlib": "plot",
    "onnx": "onnx",
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


def user_cache() -> Path:
    """Return the folder in which the system keeps what this package can make or get again."""
    home = Path.home()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
        return Path(local) / "dplasso" / "dplasso" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "dplasso"
    return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or home / ".cache") / "dplasso"
