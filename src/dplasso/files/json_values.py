"""Results and parameters as JSON values.

Of parameters, an object with one entry says what JSON has no form for.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def json_safe(value: Any) -> Any:
    """Turn a value into what strict JSON can hold: infinities become "inf"/"-inf", NaN null."""
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def to_json(value: Any, other: Callable[[Any], Any]) -> Any:
    """Return a parameter as a JSON value; `other` converts, or refuses, what is not listed here."""
    # Imported here because the command line loads this file for its help.
    import numpy as np

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list | tuple | set | frozenset):
        ordered = sorted(value) if isinstance(value, set | frozenset) else value
        items = [to_json(item, other) for item in ordered]
        if isinstance(value, list):
            return items
        return {"tuple" if isinstance(value, tuple) else "set": items}
    if isinstance(value, Mapping):
        return {"dict": [[to_json(part, other) for part in pair] for pair in value.items()]}
    return other(value)


def from_json(value: Any, readers: Mapping[str, Callable[[Any], Any]]) -> Any:
    """Return a parameter; `readers` convert objects whose entry has their name.

    ValueError for an object of another kind.
    """
    if isinstance(value, list):
        return [from_json(item, readers) for item in value]
    if not isinstance(value, dict):
        return value
    kind, *others = value
    if others:
        raise ValueError("a parameter is of an unknown kind")
    held = value[kind]
    if kind == "float":
        return float(held)
    if kind in ("tuple", "set"):
        return (tuple if kind == "tuple" else set)(from_json(item, readers) for item in held)
    if kind == "dict":
        return {from_json(key, readers): from_json(item, readers) for key, item in held}
    if kind not in readers:
        raise ValueError("a parameter is of an unknown kind")
    return readers[kind](held)
