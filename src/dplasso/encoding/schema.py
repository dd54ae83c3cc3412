"""The schema of a table: which columns a record becomes, declared by a person.

Every column of the result follows from the schema alone. Nothing is counted, selected or measured
on the records, so the encoding costs no privacy and one record's row depends on that record only.
A schema is a tuple of parts (`dplasso.encoding.parts`), whose blocks of columns stand in their
order. As JSON a part is an object whose `kind` names it (docs/tables.md).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.encoding.contract import Coded, Part
from dplasso.encoding.dates import Date
from dplasso.encoding.edges import ReleasedEdges, edges_from_json
from dplasso.encoding.parts import Bins, Categories, Cross, Hashed, Number, Text

_KINDS: dict[str, Any] = {
    "categories": Categories,
    "bins": Bins,
    "date": Date,
    "number": Number,
    "hashed": Hashed,
    "text": Text,
    "cross": Cross,
}


@dataclass(frozen=True)
class Schema:
    """What becomes of a table's columns.

    Attributes
    ----------
    parts : tuple of parts
        `Categories`, `Bins`, `Date`, `Number`, `Hashed`, `Text`, `Cross`. Columns that no part
        takes are never read.
    label : str or None
        Column of the labels; needed to train only.
    note : str
        What a draft says of itself, until a person takes it out.
    confirm : tuple of str
        By part, what a person has to confirm of a draft; empty where nothing is left to confirm.
    edges : ReleasedEdges or None
        What is said of edges of bins that were released from the records to be fitted.
    """

    parts: tuple[Part, ...]
    label: str | None = None
    note: str = ""
    confirm: tuple[str, ...] = ()
    edges: ReleasedEdges | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        object.__setattr__(self, "confirm", tuple(self.confirm) or ("",) * len(self.parts))
        if not self.parts:
            raise ValueError("a schema needs at least one part: declare what a column is")
        if len(self.confirm) != len(self.parts):
            raise ValueError("confirm has a text for each part, or none at all")
        if self.label is not None and self.label in self.columns:
            raise ValueError(f"column {self.label!r} cannot be both label and feature")
        # Of crosses this finds out whether there are such columns, and not too many of them.
        assert self.n_features

    @property
    def is_unedited_draft(self) -> bool:
        """Whether it was drafted from records, and its note or a mark to confirm is still there."""
        return bool(self.note) or any(self.confirm)

    @property
    def columns(self) -> list[str]:
        """Columns of the table that are read for the features, each once."""
        taken = dict.fromkeys(column for part in self.parts for column in part.columns)
        return list(taken)

    def coded(self, column: str) -> Coded:
        """Return the one part whose codes of a column a cross takes."""
        found = [part for part in self.parts if isinstance(part, Coded) and column in part.columns]
        if len(found) != 1:
            raise ValueError(
                f"a cross takes column {column!r}, which {len(found) or 'no'} parts of the kinds "
                "categories, bins, date and hashed encode; exactly one must"
            )
        return found[0]

    @property
    def offsets(self) -> list[int]:
        """First column of each part's block, and the number of columns at the end."""
        return [0, *np.cumsum([part.width(self) for part in self.parts]).tolist()]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.offsets[-1]

    def names(self, columns: Sequence[int] | NDArray[Any]) -> list[str]:
        """Return the names of some columns of the result, from 0 to ``n_features - 1``."""
        wanted, offsets = np.asarray(columns, np.int64), self.offsets
        if wanted.size and not (wanted.min() >= 0 and wanted.max() < offsets[-1]):
            raise ValueError(f"the columns are numbered from 0 to {offsets[-1] - 1}")
        blocks = np.searchsorted(offsets, wanted, side="right") - 1
        found = np.empty(wanted.size, dtype=object)
        for block in np.unique(blocks).tolist():
            here = blocks == block
            found[here] = self.parts[block].names(self, wanted[here] - offsets[block])
        names: list[str] = found.tolist()
        return names

    def described(self) -> list[str]:
        """Return what each part declares of the table, in words."""
        return [f"{', '.join(part.columns)}: {part.described()}" for part in self.parts]

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON values; `schema_from_json` reads them back."""
        document: dict[str, Any] = {"note": self.note} if self.note else {}
        document["label"] = self.label
        kinds = {kind: name for name, kind in _KINDS.items()}
        document["parts"] = [
            {"kind": kinds[type(part)], **_values(part)} | ({"confirm": mark} if mark else {})
            for part, mark in zip(self.parts, self.confirm, strict=True)
        ]
        if self.edges is not None:
            document["edges"] = self.edges.to_json()
        plain: dict[str, Any] = json.loads(json.dumps(document))
        return plain

    def same_columns(self, other: "Schema") -> bool:
        """Return whether two schemas make the same columns, whatever they say of the label."""
        return self.parts == other.parts


def _values(part: Any) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in fields(part)}


def schema_from_json(document: Any) -> Schema:
    """Read a schema from JSON values; `ValueError` names the part that is wrong.

    ``{"label": ..., "parts": [{"kind": "categories", "column": ..., ...}, ...]}``. The edges of
    bins may also be ``{"low": 0, "high": 100, "bins": 10, "spacing": "equal" or "log"}``.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("parts"), list):
        raise ValueError('a schema is a JSON object with a list of "parts"')
    if unknown := sorted(set(document) - {"parts", "label", "note", "edges"}):
        raise ValueError(f"a schema has parts, label, note and edges, but no {unknown[0]!r}")
    label = document.get("label")
    if label is not None and not isinstance(label, str):
        raise ValueError(f"label must be the name of a column, got {label!r}")
    parts, confirm = [], []
    for number, given in enumerate(document["parts"], 1):
        kind = given.get("kind") if isinstance(given, Mapping) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            raise ValueError(
                f"part {number}: kind must be one of {', '.join(_KINDS)}, got {kind!r}"
            )
        names = {field.name: field.default is MISSING for field in fields(_KINDS[kind])}
        values = {name: value for name, value in given.items() if name not in ("kind", "confirm")}
        confirm.append(str(given.get("confirm") or ""))
        if unknown := sorted(set(values) - names.keys()):
            raise ValueError(
                f"part {number}: {kind} has no {unknown[0]!r}; it takes {', '.join(names)}"
            )
        if absent := [name for name, needed in names.items() if needed and name not in values]:
            raise ValueError(f"part {number}: {kind} needs {absent[0]!r}")
        if not isinstance(values.get("column", ""), str):
            raise ValueError(f"part {number}: column must be a name, got {values['column']!r}")
        try:
            parts.append(_KINDS[kind](**values))
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"part {number}: {error}") from None
    note, edges = str(document.get("note") or ""), edges_from_json(document.get("edges"))
    return Schema(tuple(parts), label, note, tuple(confirm), edges)


def read_schema(path: str | Path) -> Schema:
    """Read a schema from a JSON file; `ValueError` names the file and the part that is wrong."""
    try:
        return schema_from_json(json.loads(Path(path).read_text(encoding="utf-8-sig")))
    except (ValueError, RecursionError) as error:
        kind = "not a JSON file" if isinstance(error, json.JSONDecodeError) else "no usable schema"
        raise ValueError(f"{path}: {kind}: {error}") from None
