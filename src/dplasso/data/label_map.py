"""What labels mean: text and numbers in the data mapped to the numbers to be learnt."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.labels import as_number
from dplasso.errors import DataError

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
TRUTH = {"false": 0.0, "true": 1.0}


@dataclass(frozen=True)
class LabelMap:
    """A checked map of labels: `words` are all of them, compared as text.

    `numbers` are those that are numbers, compared as such: 1, +1 and 1.0 are one label.
    """

    words: dict[str, float]
    numbers: dict[float, float]

    def meaning(self, label: str | float | bool) -> float:
        """Return what a label is mapped to, as text or else as a number; NaN for none."""
        if isinstance(label, bool):
            for word, value in self.words.items():
                if TRUTH.get(word.lower()) == label:
                    return value
        if isinstance(label, str):
            if label in self.words:
                return self.words[label]
            number = decimal(label)
            return math.nan if number is None else self.numbers.get(number, math.nan)
        return self.numbers.get(float(label), math.nan)

    def shown(self) -> str:
        """Name the labels, for messages."""
        return ", ".join(repr(word) for word in self.words)


def check_label_map(label_map: Mapping[Any, Any]) -> LabelMap:
    """Return a checked map from labels, texts or numbers, to finite numbers; or `DataError`."""
    words: dict[str, float] = {}
    numbers: dict[float, float] = {}
    for key, target in label_map.items():
        label = str(key).strip()
        if not label:
            raise DataError(
                "`label_map`: a label is empty; name the label as it stands in the data"
            )
        value = as_number(target)
        if value is None or not math.isfinite(value):
            raise DataError(
                f"`label_map`: label {label!r} is mapped to {target!r}; map it to a finite number"
            )
        number = decimal(label)
        if words.setdefault(label, value) != value or (
            number is not None and numbers.setdefault(number, value) != value
        ):
            raise DataError(f"`label_map`: label {label!r} is mapped to two different numbers")
    if not words:
        raise DataError("`label_map` is empty; name labels and what they mean, such as neg=0,pos=1")
    return LabelMap(words, numbers)


def parse_label_map(text: str) -> dict[str, float]:
    """Read ``LABEL=NUMBER,LABEL=NUMBER,...``, such as ``neg=0,pos=1``; or raise `DataError`."""
    label_map: dict[str, str] = {}
    for part in text.split(","):
        label, equals, target = (piece.strip() for piece in part.rpartition("="))
        if not equals or not label or decimal(target) is None:
            raise DataError(
                f"label map {text!r}: {part.strip()!r} is not LABEL=NUMBER; "
                "write for example neg=0,pos=1"
            )
        if label in label_map:
            raise DataError(f"label map {text!r}: label {label!r} appears twice")
        label_map[label] = target
    return check_label_map(label_map).words


def map_labels(labels: NDArray[Any], label_map: LabelMap, name: str, first: int = 0) -> Any:
    """Return what labels mean; `DataError` names the row, `first` of which came before."""
    present, where = np.unique(labels, return_inverse=True)
    mapped = np.array([label_map.meaning(label) for label in present.tolist()], np.float64)[where]
    unknown = np.isnan(mapped)
    if unknown.any():
        at = int(np.argmax(unknown))
        raise DataError(
            f"{name}: the label of row {first + at + 1} is not in the label map "
            f"({label_map.shown()})"
        )
    return mapped


def decimal(text: str) -> float | None:
    """Read a number as svmlight text writes it, infinite if it is too large; None for others."""
    return float(text) if _NUMBER.fullmatch(text) else None
