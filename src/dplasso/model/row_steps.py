"""The public steps of a pipeline that turn raw records into rows for the model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_OF_TEXTS = ("HashingVectorizer", "CountVectorizer", "TfidfVectorizer")
_ENTRIES = {"steps", "model", "inputs", "columns"}


@dataclass(frozen=True)
class RowSteps:
    """The steps of a pipeline before its model, as a model file holds them.

    `steps`: of each ``name``, ``type``, ``params``, those that are not the type's own, and perhaps
    ``output`` (`dplasso.estimators.load`).
    `model`: the name of the last step.
    `inputs`: names of the raw columns, their number, or None for texts and what has neither.
    `columns`, shape (D,): names of the columns that the steps make, where they have any.
    """

    steps: tuple[Mapping[str, Any], ...]
    model: str
    inputs: tuple[str, ...] | int | None = None
    columns: NDArray[np.object_] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what a model file's header says of it."""
        inputs, columns = self.inputs, self.columns
        return {
            "steps": list(self.steps),
            "model": self.model,
            "inputs": list(inputs) if isinstance(inputs, tuple) else inputs,
            "columns": None if columns is None else [str(name) for name in columns],
        }

    def described(self) -> list[str]:
        """Return each step in words."""
        return [_described(step) for step in self.steps]

    @property
    def takes_texts(self) -> bool:
        """Whether its raw rows are texts."""
        return next(self.types(), "").endswith(_OF_TEXTS)

    def types(self) -> Iterator[str]:
        """Return the types of the steps, without those inside of them."""
        return (str(step["type"]) for step in self.steps)


def _described(step: Mapping[str, Any]) -> str:
    place, name = step["type"], step["type"].rpartition(".")[2].rpartition(":")[2]
    given = ", ".join(f"{key}={_short(value)}" for key, value in step["params"].items())
    # Types with a colon are the users' own.
    return f"{name}({given})" + (" (declared to treat each record separately)" * (":" in place))


def _short(value: Any) -> str:
    if isinstance(value, dict) and "parts" in value:
        return "its schema"
    if isinstance(value, dict) and {"type", "params"} <= value.keys():
        return _described(value)
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    if isinstance(value, list | dict) and len(value) > 4:
        return f"({len(value):,} public values)"
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return str(value) if not isinstance(value, str) else repr(value)


def row_steps_from_json(document: Any, n_features: int) -> RowSteps:
    """Read the steps of a model file; ValueError if they are none of such a model."""
    if not isinstance(document, Mapping) or set(document) != _ENTRIES:
        raise ValueError("its pipeline has missing or unknown entries")
    steps, inputs, columns = (document[name] for name in ("steps", "inputs", "columns"))
    if not isinstance(steps, list) or not all(map(_is_step, steps)):
        raise ValueError("its pipeline has a step that is none")
    if isinstance(inputs, list) and all(isinstance(name, str) for name in inputs):
        inputs = tuple(inputs)
    elif not (inputs is None or (type(inputs) is int and inputs > 0)):
        raise ValueError("the columns that its pipeline takes are neither names nor a number")
    if columns is not None:
        if not isinstance(columns, list) or [type(name) for name in columns] != [str] * n_features:
            raise ValueError(f"its pipeline does not name {n_features:,} columns")
        columns = np.array(columns, dtype=object)
    return RowSteps(tuple(steps), str(document["model"]), inputs, columns)


def _is_step(step: Any) -> bool:
    return (
        isinstance(step, dict)
        and {"name", "type", "params"} <= step.keys() <= {"name", "type", "params", "output"}
        and all(isinstance(step[name], str) for name in ("name", "type"))
        and isinstance(step["params"], dict)
        and step.get("output", "default") in ("default", "pandas", "polars")
    )
