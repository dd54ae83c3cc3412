"""Record how rows were made: their columns, and the steps of a pipeline before the model.

A model applies only to rows whose columns have the same meaning. Matrices, stores and models
therefore carry an `Origin`, and a model refuses rows whose origin differs from its own. `RowSteps`
are the public steps of a pipeline that turn raw records into rows for the model.
"""

import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.encoding.schema import ReleasedEdges, Schema, schema_from_json, shown_settings
from dplasso.errors import DataError, PrivacyLeakWarning
from dplasso.matrix.edged_rows import EdgedRows

_ATTRIBUTE = "dplasso_origin"
_ENTRIES = {"steps", "model", "inputs", "columns"}


@dataclass(frozen=True)
class Origin:
    """How the columns of a matrix were made.

    `schema`: the schema that encoded them; None for column numbers from the data.
    `binarize`: whether every non-zero value was replaced by 1. `warned`: whether the encoder has
    warned of a draft already. `columns_declared`: False if their number was taken from the data.
    """

    schema: Schema | None = None
    binarize: bool = False
    warned: bool = field(default=False, compare=False)
    columns_declared: bool = field(default=True, compare=False)

    @property
    def edges(self) -> ReleasedEdges | None:
        """The bin edges that were released from the records; None for none."""
        return None if self.schema is None else self.schema.edges

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        schema = None if self.schema is None else self.schema.to_json()
        made = {"schema": schema, "binarize": self.binarize}
        return made | {"columns_declared": self.columns_declared}


def origin_from_json(document: Any) -> Origin | None:
    """Read an origin from JSON values; return None if they do not describe one."""
    if not isinstance(document, Mapping) or not {"schema", "binarize"} <= document.keys():
        return None
    schema = document["schema"]
    if not isinstance(document["binarize"], bool):
        raise ValueError("binarize must be true or false")
    return Origin(
        None if schema is None else schema_from_json(schema),
        document["binarize"],
        columns_declared=document.get("columns_declared") is not False,
    )


def with_origin(X: Any, origin: Origin | None) -> Any:
    """Return rows with an origin; slices and copies of most matrices lose it."""
    if origin is not None and origin.edges is not None and isinstance(X, csr_array):
        X = EdgedRows(X)
    setattr(X, _ATTRIBUTE, origin)
    return X


def origin_of(X: Any) -> Origin | None:
    """Return the origin of a matrix or store; None if it has none."""
    from dplasso.data.store import Store

    if isinstance(X, Store):
        return origin_from_json(X.header.origin)
    origin = getattr(X, _ATTRIBUTE, None)
    return origin if isinstance(origin, Origin) else origin_from_json(origin)


def columns_declared(origin: Origin | None) -> bool:
    """Return whether the number of columns is public, as that of an array without an origin."""
    return origin is None or origin.columns_declared


def warn_of_draft(origin: Origin | None, stacklevel: int = 4) -> None:
    """Issue `PrivacyLeakWarning` for a draft that nobody has edited or confirmed, but not twice."""
    schema = None if origin is None or origin.warned else origin.schema
    if schema is None:
        return
    if schema.is_unedited_draft:
        parts = zip(schema.parts, schema.confirm, strict=True)
        marked = [part.columns[0] for part, mark in parts if mark]
        left = f"confirm the parts for {', '.join(marked[:5])}{' ...' * (len(marked) > 5)}"
        note = schema.note
        rest = f". {note[0].upper()}{note[1:]}" if note else f": {left}"
        sentence = f"the schema is a draft that nobody has edited{rest}"
    elif schema.confirmed is False:
        sentence = (
            "nobody has confirmed that the schema uses public knowledge only: check it, and set "
            '"confirmed" to true in its file'
        )
    else:
        return
    warnings.warn(sentence, PrivacyLeakWarning, stacklevel)


def refuse_lost_edges(X: Any) -> None:
    """Raise `DataError` if X, or a partition, has private edges but lost its origin."""
    for rows in X if isinstance(X, list | tuple) else [X]:
        if isinstance(rows, EdgedRows) and origin_of(rows) is None:
            raise DataError(
                "X was computed from rows whose bins have private edges, and the fit would not "
                "count their cost",
                advice="fit on what the encoder returned, or on some of its rows",
            )


def check_same_origin(model: Origin | None, data: Origin | None, name: str = "X") -> None:
    """Raise `DataError` if the data were encoded differently from the model's training data."""
    if model is None or data is None:
        return
    ours, theirs = model.schema, data.schema
    fault = ""
    if ours is None and theirs is not None:
        fault = "was encoded by a schema, but the model was trained on numbered columns"
    elif ours is not None and theirs is None:
        fault = (
            "has numbered columns, but the model was trained on a table encoded by its schema; "
            "pass a table with the columns of the schema"
        )
    elif ours is not None and theirs is not None and not ours.same_columns(theirs):
        pairs = zip(ours.parts, theirs.parts, strict=False)
        at = next((k for k, (own, other) in enumerate(pairs, 1) if own != other), None)
        at = at or min(len(ours.parts), len(theirs.parts)) + 1
        differ = f"from part {at} on" if ours.parts != theirs.parts else 'in "missing"'
        fault = f"was encoded by a different schema than the model's: they differ {differ}"
    elif model.binarize != data.binarize:
        words = ("original values", "values replaced by 1")
        fault = (
            f"has {words[data.binarize]}, but the model was trained on {words[model.binarize]} "
            "(--binarize)"
        )
    if fault:
        raise DataError(f"{name} {fault}")


Groups = tuple[tuple[int, ...], ...]

# The variable of ``job=clerk``, ``age<30``, ``30<=age<50`` and ``age>=50``.
_NAME = re.compile(
    r"(?:(?P<low>[^<>=]+)<=?)?(?P<variable>[^<>=]+)(?P<sign><=|>=|<|>|=)(?P<value>.*)"
)
_OTHERS = re.compile(r"(?P<variable>.+) \((?:missing|unknown)\)")


def _parsed(name: str) -> re.Match[str] | None:
    return _OTHERS.fullmatch(name) or _NAME.fullmatch(name)


def schema_of(origin: Origin | None) -> Schema | None:
    """Return the schema that made the columns, if one did."""
    return None if origin is None else origin.schema


def column_names(names: Any, schema: Schema | None, n_features: int) -> list[str]:
    """Return names of all columns: their own, by the schema, or else ``x0``, ``x1`` and so on."""
    if names is not None:
        return [str(name) for name in names]
    columns = range(n_features)
    return [f"x{j}" for j in columns] if schema is None else schema.names(columns)


def is_named(column: str, names: Collection[str]) -> bool:
    """Return whether names hold a column's own, or that of its variable: job of ``job=clerk``."""
    match = _parsed(column)
    return column in names or (match is not None and match["variable"] in names)


def one_hot_groups(records: Any) -> Groups:
    """Return the groups of columns of which a record has at most one, from public knowledge.

    The groups follow from the schema, or else from the names of the columns: ``job=clerk`` and
    ``job=driver`` are a group.
    """
    schema = schema_of(records.origin)
    if schema is not None:
        groups: Groups = schema.one_hot
        return groups
    names = records.feature_names
    return () if names is None else named_groups([str(name) for name in names])


def named_groups(names: list[str]) -> Groups:
    """Return the one-hot groups that names imply, in the order of their first columns.

    Several names such as ``age>=30`` are cumulative bins, not a group: a record may have many.
    """
    places: dict[str, list[int]] = {}
    open_ended: dict[str, list[str]] = {}
    for place, name in enumerate(names):
        match = _parsed(name)
        if match is None:
            continue
        variable, parts = match["variable"], match.groupdict()
        places.setdefault(variable, []).append(place)
        if parts.get("sign", "=") != "=" and not parts.get("low"):
            open_ended.setdefault(variable, []).append(parts["sign"][0])
    return tuple(
        tuple(columns)
        for variable, columns in places.items()
        if len(columns) > 1 and len(ends := open_ended.get(variable, [])) == len(set(ends))
    )


@dataclass(frozen=True)
class RowSteps:
    """The steps of a pipeline before its model, in the form of a model file.

    `steps`: for each step ``name``, ``type``, the ``params`` that differ from the defaults, and
    optionally ``output`` (`dplasso.estimators.load`).
    `model`: the name of the last step.
    `inputs`: names of the raw columns, or their number; None if unknown, as for texts.
    `columns`, shape (D,): names of the columns after the steps; None if they have none.
    """

    steps: tuple[Mapping[str, Any], ...]
    model: str
    inputs: tuple[str, ...] | int | None = None
    columns: NDArray[np.object_] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the steps as JSON values for the header of a model file."""
        inputs, columns = self.inputs, self.columns
        return {
            "steps": list(self.steps),
            "model": self.model,
            "inputs": list(inputs) if isinstance(inputs, tuple) else inputs,
            "columns": None if columns is None else [str(name) for name in columns],
        }

    def described(self) -> list[str]:
        """Return a description of each step in words."""
        return [_described(step) for step in self.steps]


def _described(step: Mapping[str, Any]) -> str:
    place = step["type"]
    # Types with a colon were declared by users.
    declared = " (declared to treat each record separately)" * (":" in place)
    name = place.rpartition(".")[2].rpartition(":")[2]
    return f"{name}({shown_settings(step['params'])}){declared}"


def row_steps_from_json(document: Any, n_features: int) -> RowSteps:
    """Read the steps of a model file; ValueError if they do not match the model."""
    if not isinstance(document, Mapping) or set(document) != _ENTRIES:
        raise ValueError("its pipeline has missing or unknown entries")
    steps, inputs, columns = (document[name] for name in ("steps", "inputs", "columns"))
    if not isinstance(steps, list) or not all(map(_is_step, steps)):
        raise ValueError("its pipeline has an invalid step")
    if isinstance(inputs, list) and all(isinstance(name, str) for name in inputs):
        inputs = tuple(inputs)
    elif not (inputs is None or (type(inputs) is int and inputs > 0)):
        raise ValueError("the inputs of its pipeline are neither names nor a number")
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
