"""How the columns of a matrix were made: kept by matrices, stores and models, and compared.

A model's weights mean something for rows whose columns mean the same. Whoever knows how columns
were made says so, and two that are known to differ are never brought together.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dplasso.encoding.schema import ReleasedEdges, Schema, schema_from_json
from dplasso.errors import DataError

_ATTRIBUTE = "dplasso_origin"


@dataclass(frozen=True)
class Origin:
    """How columns were made.

    `schema`: by what schema; None for column numbers as they stood in the data.
    `binarize`: whether every non-zero value was turned into 1.
    """

    schema: Schema | None = None
    binarize: bool = False

    @property
    def is_unedited_draft(self) -> bool:
        """Whether the columns come from a draft that was taken from records and not confirmed."""
        return self.schema is not None and self.schema.is_unedited_draft

    @property
    def is_unconfirmed(self) -> bool:
        """Whether the columns come from a draft that nobody has confirmed."""
        return self.schema is not None and self.schema.confirmed is False

    @property
    def edges(self) -> ReleasedEdges | None:
        """What is said of edges that were released from the records; None for none."""
        return None if self.schema is None else self.schema.edges

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        schema = None if self.schema is None else self.schema.to_json()
        return {"schema": schema, "binarize": self.binarize}


def origin_from_json(document: Any) -> Origin | None:
    """Read an origin; None where there is none, or a store says something else."""
    if not isinstance(document, Mapping) or not {"schema", "binarize"} <= document.keys():
        return None
    schema = document["schema"]
    if not isinstance(document["binarize"], bool):
        raise ValueError("binarize must be true or false")
    return Origin(None if schema is None else schema_from_json(schema), document["binarize"])


def with_origin(X: Any, origin: Origin | None) -> Any:
    """Note on a sparse matrix how its columns were made; slices and copies do not know it."""
    setattr(X, _ATTRIBUTE, origin)
    return X


def origin_of(X: Any) -> Origin | None:
    """Return how the columns of a matrix or store were made; None where nobody noted it."""
    from dplasso.data.store import Store

    if isinstance(X, Store):
        return origin_from_json(X.header.origin)
    found = getattr(X, _ATTRIBUTE, None)
    return found if isinstance(found, Origin) else None


def check_same_origin(model: Origin | None, data: Origin | None, name: str = "X") -> None:
    """Raise `DataError`, which names the difference, for rows known to be unlike the model's."""
    if model is None or data is None:
        return
    ours, theirs = model.schema, data.schema
    fault = ""
    if ours is None and theirs is not None:
        fault = "was encoded by a schema, but the model was trained on numbered columns"
    elif ours is not None and theirs is None:
        fault = "has numbered columns, but the model was trained on a table encoded by its schema"
    elif ours is not None and theirs is not None and not ours.same_columns(theirs):
        pairs = zip(ours.parts, theirs.parts, strict=False)
        at = next((k for k, (one, other) in enumerate(pairs, 1) if one != other), None)
        at = at or min(len(ours.parts), len(theirs.parts)) + 1
        differ = f"from part {at} on" if ours.parts != theirs.parts else 'in "missing"'
        fault = f"was encoded by another schema than the model's: they differ {differ}"
    elif model.binarize != data.binarize:
        words = ("as they are", "turned into 1")
        fault = (
            f"has its values {words[data.binarize]}, but the model was trained on values "
            f"{words[model.binarize]} (--binarize)"
        )
    if fault:
        raise DataError(f"{name} {fault}")


Groups = tuple[tuple[int, ...], ...]

# The variable of ``job=clerk``, ``age<30``, ``30<=age<50`` and ``age>=50``.
_NAME = re.compile(
    r"(?:(?P<low>[^<>=]+)<=?)?(?P<variable>[^<>=]+)(?P<sign><=|>=|<|>|=)(?P<value>.*)"
)
_OTHERS = re.compile(r"(?P<variable>.+) \((?:missing|unknown)\)")


def one_hot_groups(records: Any) -> Groups:
    """Return the groups of columns of which a record has at most one, by public knowledge alone.

    A schema declares them. Without one, names do: ``job=clerk`` and ``job=driver`` are a group.
    """
    schema = None if records.origin is None else records.origin.schema
    if schema is not None:
        groups: Groups = schema.one_hot
        return groups
    names = records.feature_names
    return () if names is None else named_groups([str(name) for name in names])


def named_groups(names: list[str]) -> Groups:
    """Return the groups that names tell, in the order of their first columns.

    Several names as ``age>=30`` are cumulative bins, of which a record has many: no group.
    """
    places: dict[str, list[int]] = {}
    open_ended: dict[str, list[str]] = {}
    for place, name in enumerate(names):
        found = _OTHERS.fullmatch(name) or _NAME.fullmatch(name)
        if found is None:
            continue
        variable, parts = found["variable"], found.groupdict()
        places.setdefault(variable, []).append(place)
        if parts.get("sign", "=") != "=" and not parts.get("low"):
            open_ended.setdefault(variable, []).append(parts["sign"][0])
    return tuple(
        tuple(columns)
        for variable, columns in places.items()
        if len(columns) > 1 and len(ends := open_ended.get(variable, [])) == len(set(ends))
    )
