"""The schema of a table: a public declaration of how to encode each record.

The schema determines every feature, and a row depends only on its own record, so the encoding uses
no privacy budget. A schema is a tuple of parts (`dplasso.encoding.parts`), whose blocks of features
follow one another. docs/tables.md describes the JSON format.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack

from dplasso.data.blocks import Rows
from dplasso.encoding.contract import Coded, Part, TableColumns, Where
from dplasso.encoding.hashed import Hashed, Text
from dplasso.encoding.levels import Levels
from dplasso.encoding.parts import Bins, Categories, Cross, Date, Number, Pairs
from dplasso.errors import ParameterError, shown
from dplasso.privacy.budget import Budget
from dplasso.privacy.statement import PrivacyStatement, StatedRelease
from dplasso.privacy.wording import rounded_up

_KINDS: dict[str, Any] = {
    "categories": Categories,
    "bins": Bins,
    "levels": Levels,
    "date": Date,
    "number": Number,
    "hashed": Hashed,
    "text": Text,
    "cross": Cross,
    "pairs": Pairs,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_ENTRIES = ("label", "parts", "missing", "note", "edges", "confirmed")
# Entries of any part: its kind, and the remarks of a draft.
_OF_PARTS = ("kind", "about", "confirm")


@dataclass(frozen=True)
class ReleasedEdges:
    """The release of bin edges of `columns`: private quantiles; `digest` as in the ledger."""

    columns: tuple[str, ...]
    digest: str
    statement: PrivacyStatement
    by_person: bool = False

    def mu_of(self, rows_per_person: int) -> float:
        """Return the cost (mu) of the edges in a fit that protects so many rows of a person."""
        return math.ceil(rows_per_person / self.statement.rows_per_person) * self.statement.mu

    def stated(self, rows_per_person: int) -> StatedRelease:
        """Return the entry for the edges in the privacy statement of such a fit."""
        mu = self.mu_of(rows_per_person)
        return StatedRelease(
            "edges",
            f"edges of the bins of {', '.join(self.columns)} at private quantiles of the same "
            f"records ({rounded_up(mu)}-GDP, {self.digest[:12]})",
            {"mu": mu},
        )

    def before(self, budget: Budget, *, seeded: bool, by_person: bool) -> Budget:
        """Return a fit's budget, reduced by the cost of the edges, which its epsilon covers.

        Edges and fit must protect the same unit. If that is people, another row of a person may
        replace one that is removed, so the edges may not protect rows only.
        """
        ours = self.statement
        if budget.leak:
            return budget
        if ours.neighbors != budget.neighbors:
            raise ParameterError(
                f"the schema's edges were released for `neighbors={ours.neighbors!r}`; fit with "
                f"the same, not {budget.neighbors!r}"
            )
        if by_person != self.by_person:
            units = {False: "single rows", True: "people"}
            raise ValueError(
                f"the schema's edges protect {units[self.by_person]}, but this fit protects "
                f"{units[by_person]}: release the edges and fit with the same groups "
                "(--person-column), or both without"
            )
        if not (ours.is_private or seeded):
            raise ValueError(
                "the schema's edges were released with `random_state`, so no fit with them is "
                "private; release them without it"
            )
        return budget.after(self.mu_of(budget.rows_per_person))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return _values(self) | {
            "columns": list(self.columns),
            "statement": self.statement.to_dict(),
        }


def edges_from_json(document: Any) -> ReleasedEdges | None:
    """Read edges from the JSON values of `to_json`, or None; ValueError for anything else."""
    if document is None:
        return None
    # Files of earlier versions have no `by_person`; assume that their edges protect rows only.
    expected = {"columns", "digest", "statement", "by_person"}
    if not isinstance(document, Mapping) or set(document) | {"by_person"} != expected:
        raise ValueError("edges must have columns, digest and statement, as their release wrote")
    columns, digest = document["columns"], document["digest"]
    by_person = document.get("by_person", False)
    if not (isinstance(digest, str) and isinstance(columns, list) and isinstance(by_person, bool)):
        raise ValueError("edges need a digest, a list of columns, and true or false as by_person")
    try:
        statement = PrivacyStatement.from_dict(document["statement"])
    except (TypeError, OverflowError) as error:
        raise ValueError(f"the statement of edges is damaged: {error}") from None
    if statement.about != "edges" or not math.isfinite(statement.mu):
        raise ValueError("the statement of edges does not belong to a release of edges")
    return ReleasedEdges(tuple(map(str, columns)), digest, statement, by_person)


@dataclass(frozen=True)
class Schema:
    """How to encode the columns of a table.

    Attributes
    ----------
    parts : tuple of parts
        `Categories`, `Bins`, `Levels`, `Date`, `Number`, `Hashed`, `Text`, `Cross`, `Pairs`. Other
        columns are never read.
    label : str or None
        Column of the labels; needed only for training.
    note : str
        The warning in a draft, until a person removes it.
    confirm : tuple of str
        For each part of a draft, what a person has to confirm; empty for nothing.
    edges : ReleasedEdges or None
        The release of bin edges from the records to be fitted.
    missing : tuple of str
        Words for a missing value, in upper or lower case, unless a column declares them as
        categories. Columns of numbers and dates also accept the usual words.
    confirmed : bool or None
        Whether a person has confirmed that a draft uses public knowledge only; None for a schema
        that is not a draft.
    """

    parts: tuple[Part, ...]
    label: str | None = None
    note: str = ""
    confirm: tuple[str, ...] = ()
    edges: ReleasedEdges | None = None
    missing: tuple[str, ...] = ()
    confirmed: bool | None = None

    def __post_init__(self) -> None:
        parts = [part.among(self.parts) if isinstance(part, Pairs) else part for part in self.parts]
        object.__setattr__(self, "parts", tuple(parts))
        words: Any = self.missing
        if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
            raise ValueError("missing must be a list of words")
        object.__setattr__(self, "missing", tuple(words))
        object.__setattr__(self, "confirm", tuple(self.confirm) or ("",) * len(self.parts))
        if not self.parts:
            raise ValueError("a schema needs at least one part")
        if len(self.confirm) != len(self.parts):
            raise ValueError("confirm must have one text for each part, or be empty")
        if self.label is not None and self.label in self.columns:
            raise ValueError(f"column {self.label!r} cannot be both label and feature")
        # Also checks that the columns of crosses exist, and that there are not too many features.
        assert self.n_features

    @property
    def is_unedited_draft(self) -> bool:
        """Whether the schema is a draft that nobody has edited or confirmed."""
        return not self.confirmed and (bool(self.note) or any(self.confirm))

    @property
    def columns(self) -> list[str]:
        """Distinct columns of the table that the parts encode."""
        taken = dict.fromkeys(column for part in self.parts for column in part.columns)
        return list(taken)

    def coded(self, column: str) -> Coded:
        """Return the part that encodes a column for a cross; ValueError unless there is one."""
        parts = [part for part in self.parts if isinstance(part, Coded) and column in part.columns]
        if len(parts) != 1:
            raise ValueError(
                f"a cross uses column {column!r}, so exactly one part of the kinds categories, "
                f"bins, levels, date and hashed must encode it, not {len(parts)}"
            )
        return parts[0]

    @property
    def offsets(self) -> list[int]:
        """First feature of each part's block, and the number of all features at the end."""
        return [0, *np.cumsum([part.width(self.coded) for part in self.parts]).tolist()]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.offsets[-1]

    @property
    def levels(self) -> tuple[tuple[int, int, int], ...]:
        """The finer levels of `Levels` parts: number of bins, first feature and end."""
        ranges = []
        for part, offset in zip(self.parts, self.offsets, strict=False):
            if isinstance(part, Levels):
                for level, start in zip(part.levels[1:], part.starts[1:], strict=False):
                    ranges.append((level, offset + start, offset + start + level))
        return tuple(ranges)

    @property
    def pairs(self) -> tuple[tuple[int, int, int], ...]:
        """The first feature of each pair of columns, and the numbers of codes of both."""
        return tuple(
            (offset + first, left, right)
            for part, offset in zip(self.parts, self.offsets, strict=False)
            if isinstance(part, Pairs)
            for first, left, right in part.blocks(self.coded)
        )

    def columns_of(self, feature: int) -> tuple[str, ...]:
        """Return the columns of the table that a feature encodes."""
        place = int(np.searchsorted(self.offsets[1:], feature, "right"))
        return self.parts[place].columns_of(self.coded, feature - self.offsets[place])

    @property
    def one_hot(self) -> tuple[tuple[int, ...], ...]:
        """The features of each one-hot part."""
        pairs = zip(self.parts, self.offsets, strict=False)
        return tuple(
            tuple(range(offset, offset + part.width(self.coded)))
            for part, offset in pairs
            if isinstance(part, Coded) and part.one_hot
        )

    @property
    def slots(self) -> list[tuple[int, int, float]]:
        """Ranges of features (first, end) of all parts, with the entries of a typical row."""
        pairs = zip(self.parts, self.offsets, strict=False)
        return [
            (offset + first, offset + last, entries)
            for part, offset in pairs
            for first, last, entries in part.slots(self.coded)
        ]

    def names(self, columns: Sequence[int] | NDArray[Any]) -> list[str]:
        """Return the names of some features, numbered from 0 to ``n_features - 1``."""
        wanted, offsets = np.asarray(columns, np.int64), self.offsets
        if wanted.size and not (wanted.min() >= 0 and wanted.max() < offsets[-1]):
            raise ValueError(f"columns must be from 0 to {offsets[-1] - 1}")
        blocks = np.searchsorted(offsets, wanted, side="right") - 1
        named = np.empty(wanted.size, dtype=object)
        for block in np.unique(blocks).tolist():
            here = blocks == block
            named[here] = self.parts[block].names(self.coded, wanted[here] - offsets[block])
        names: list[str] = named.tolist()
        return names

    def described(self) -> list[str]:
        """Return a description of each part in words."""
        described = []
        for part in self.parts:
            settings = {name: value for name, value in _values(part).items() if value is not None}
            columns = settings.pop("column", None) or ", ".join(settings.pop("columns"))
            described.append(f"{columns}: {_NAMES[type(part)]}({shown_settings(settings)})")
        return described

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON values; `schema_from_json` reads them back."""
        document: dict[str, Any] = {"note": self.note} if self.note else {}
        document["label"] = self.label
        if self.missing:
            document["missing"] = list(self.missing)
        document["parts"] = [
            {"kind": _NAMES[type(part)], **_values(part)} | ({"confirm": mark} if mark else {})
            for part, mark in zip(self.parts, self.confirm, strict=True)
        ]
        if self.edges is not None:
            document["edges"] = self.edges.to_json()
        if self.confirmed is not None:
            document["confirmed"] = self.confirmed
        plain: dict[str, Any] = json.loads(json.dumps(document))
        return plain

    def same_columns(self, other: "Schema") -> bool:
        """Return whether two schemas make the same features; the label may differ."""
        return (self.parts, self.missing) == (other.parts, other.missing)


def shown_settings(settings: Mapping[str, Any]) -> str:
    """Return settings in words, long lists by their length."""
    return ", ".join(f"{name}={_short(value)}" for name, value in settings.items())


def _short(value: Any) -> str:
    if isinstance(value, dict) and "parts" in value:
        return "its schema"
    if isinstance(value, dict) and {"type", "params"} <= value.keys():
        return f"{value['type']}({shown_settings(value['params'])})"
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    if isinstance(value, list | tuple | dict) and len(value) > 4:
        return f"({len(value):,} public values)"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_short, value))}]"
    return repr(value)


def _values(part: Any) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in fields(part)}


def schema_from_json(document: Any) -> Schema:
    """Read a schema from JSON values; `ValueError` names the part that is wrong.

    ``{"label": ..., "parts": [{"kind": "categories", "column": ..., ...}, ...]}``.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("parts"), list):
        raise ValueError('a schema must be a JSON object with a list of "parts"')
    if unknown := sorted(set(document) - {*_ENTRIES}):
        raise ValueError(f"unknown entry {unknown[0]!r}; a schema has {', '.join(_ENTRIES)}")
    label = document.get("label")
    if label is not None and not isinstance(label, str):
        raise ValueError(f"label must be the name of a column, got {shown(label)}")
    parts, confirm = [], []
    for number, entry in enumerate(document["parts"], 1):
        kind = entry.get("kind") if isinstance(entry, Mapping) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            raise ValueError(
                f"part {number}: kind must be one of {', '.join(_KINDS)}, got {shown(kind)}"
            )
        names = {field.name: field.default is MISSING for field in fields(_KINDS[kind])}
        values = {name: value for name, value in entry.items() if name not in _OF_PARTS}
        if values.get("cumulative") is False:
            # Files of earlier versions say so of bins.
            del values["cumulative"]
        confirm.append(str(entry.get("confirm") or ""))
        if unknown := sorted(set(values) - names.keys()):
            raise ValueError(
                f"part {number}: {kind} has no {unknown[0]!r}; it takes {', '.join(names)}"
            )
        if absent := [name for name, needed in names.items() if needed and name not in values]:
            raise ValueError(f"part {number}: {kind} needs {absent[0]!r}")
        if not isinstance(values.get("column", ""), str):
            raise ValueError(f"part {number}: column must be a name, got {shown(values['column'])}")
        try:
            parts.append(_KINDS[kind](**values))
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"part {number}: {error}") from None
    note, edges = str(document.get("note") or ""), edges_from_json(document.get("edges"))
    confirmed = document.get("confirmed")
    if confirmed not in (True, False, None):
        raise ValueError(f"confirmed must be true or false, got {shown(confirmed)}")
    missing = document.get("missing") or ()
    if confirmed:
        # A model must not carry a draft's remarks about the records.
        note, confirm = "", []
    return Schema(tuple(parts), label, note, tuple(confirm), edges, missing, confirmed)


def read_schema(path: str | Path) -> Schema:
    """Read a schema from a JSON file; `ValueError` names the file and the part that is wrong."""
    try:
        return schema_from_json(json.loads(Path(path).read_text(encoding="utf-8-sig")))
    except (ValueError, RecursionError) as error:
        kind = "not a JSON file" if isinstance(error, json.JSONDecodeError) else "invalid schema"
        raise ValueError(f"{path}: {kind}: {error}") from None


def encode(schema: Schema, table: Mapping[str, Any], where: Where) -> Rows:
    """Encode records of a table as float32; None, NaN and an empty string are missing values."""
    columns = TableColumns(table, where, schema.missing)
    blocks = [block for part in schema.parts for block in part.entries(schema.coded, columns)]
    X = hstack(blocks, format="csr", dtype=np.float32)
    return Rows(X.indptr.astype(np.int64), X.indices, X.data)
