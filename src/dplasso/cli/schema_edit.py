"""The questions of ``dplasso schema edit``: column by column, Enter leaves things as they are."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dplasso.encoding.contract import Coded, Part
from dplasso.encoding.dates import Date
from dplasso.encoding.parts import Bins, Categories, Cross, Hashed, Number, Text
from dplasso.encoding.schema import Schema

_RANGE = re.compile(r"(\S+) to (\S+) in (\d+)( log)?")
# What is longer is not repeated as the default of a question.
_LONGEST = 50


@dataclass(frozen=True)
class Asker:
    """What a person is asked with: `ask` a question and its default, and `say` a sentence."""

    ask: Callable[[str, str], str]
    say: Callable[[str], None]

    def agrees(self, question: str, *, default: bool) -> bool:
        """Ask for yes or no."""
        while True:
            answer = self.ask(f"{question} (yes/no)", "yes" if default else "no").strip().lower()
            if answer in ("y", "yes", "n", "no"):
                return answer[0] == "y"
            self.say("  Answer yes or no.")

    def changed(self, part: Any, field: str, question: "_Question") -> Any:
        """Ask what a field of a part shall be, until it is something that can be."""
        kept = question.shown(getattr(part, field))
        while True:
            answer = self.ask(f"  {question.text}", kept).strip()
            try:
                return part if answer == kept else replace(part, **{field: question.read(answer)})
            except (ValueError, OverflowError) as error:
                self.say(f"  {error}")


@dataclass(frozen=True)
class _Question:
    """What to ask of a field, how to show what it is, and how to read an answer."""

    text: str
    shown: Callable[[Any], str]
    read: Callable[[str], Any]


def _listed(values: Sequence[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(map(_shown, values))
    told = line.getvalue().replace(",", ", ") if '"' not in line.getvalue() else line.getvalue()
    return told if len(told) <= _LONGEST else "as they are"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _values(answer: str) -> list[str]:
    return [one.strip() for one in next(csv.reader([answer], skipinitialspace=True))]


def _edges(answer: str) -> Any:
    """Read edges: a list of them, or a range and a number of bins."""
    found = _RANGE.fullmatch(answer)
    if found is None:
        try:
            return [float(one) for one in _values(answer)]
        except ValueError:
            raise ValueError(
                "Write edges separated by commas, or for example: 0 to 100 in 10, or "
                "1 to 1e6 in 12 log"
            ) from None
    spacing = "log" if found[4] else "equal"
    low, high = float(found[1]), float(found[2])
    return {"low": low, "high": high, "bins": int(found[3]), "spacing": spacing}


_EDGES = _Question(
    "Edges, or LOW to HIGH in N bins (end with log for logarithmic steps)", _listed, _edges
)
_WHOLE = _Question("Bits: 2^bits columns", str, int)
_QUESTIONS: Mapping[type, Mapping[str, _Question]] = {
    Bins: {"edges": _EDGES},
    Date: {"edges": _EDGES},
    Number: {
        "center": _Question("Center", lambda value: f"{value:g}", float),
        "bound": _Question("How far from it numbers reach, at most", "{:g}".format, float),
    },
    Categories: {
        "categories": _Question("All possible values, separated by commas", _listed, _values),
        "unknown": _Question("A value beyond them becomes: column, ignore, error", str, str),
    },
    Hashed: {"bits": _WHOLE},
    Text: {"bits": _WHOLE},
}


def edited(schema: Schema, asker: Asker) -> Schema:
    """Ask a person about the label and every part of a schema; return what they want it to be.

    A part's mark goes where the part is changed, or confirmed; the note when nothing is marked any
    more and the person says that everything was known without the records.
    """
    label = _label(schema, asker)
    parts: list[Part] = []
    marks: list[str] = []
    for number, (part, mark) in enumerate(zip(schema.parts, schema.confirm, strict=True), 1):
        name = ", ".join(part.columns)
        asker.say(f"\n{number} of {len(schema.parts)}. {name}: {part.described()}")
        encoded = [c for one in parts if isinstance(one, Coded) for c in one.columns]
        if isinstance(part, Cross) and any(encoded.count(column) != 1 for column in part.columns):
            asker.say("  Left out, because a column that it crosses is.")
            continue
        if mark:
            asker.say(f"  To confirm: {mark}.")
        if not asker.agrees("  Keep this part?", default=True):
            continue
        found = _asked(part, asker)
        known = found != part or not mark
        if not known:
            known = asker.agrees("  Is this as it was known without the records?", default=False)
        parts.append(found)
        marks.append("" if known else mark)
    if not parts:
        raise ValueError("no part is left: a schema needs at least one")
    note = schema.note
    asker.say("")
    if note and any(marks):
        asker.say(f"{sum(map(bool, marks))} of {len(parts)} parts are still to be confirmed.")
    elif note and asker.agrees("Was all of this known without the records?", default=False):
        note = ""
    return replace(schema, parts=tuple(parts), label=label, note=note, confirm=tuple(marks))


def _label(schema: Schema, asker: Asker) -> str | None:
    while True:
        answer = asker.ask("The column of the labels (none for no labels)", schema.label or "none")
        label = None if answer.strip() == "none" else answer.strip()
        if label not in schema.columns:
            return label
        asker.say(f"{label!r} is a feature; name another column.")


def _asked(part: Any, asker: Asker) -> Any:
    """Ask for what a part declares."""
    questions = _QUESTIONS.get(type(part), {})
    for field, question in questions.items():
        if field == "edges" and not part.edges:
            continue
        if field == "categories" and not isinstance(part.categories[0], str):
            read = _truth if isinstance(part.categories[0], bool) else _number
            question = replace(question, read=partial(_each, read))
        part = asker.changed(part, field, question)
    return part


def _each(read: Callable[[str], Any], answer: str) -> list[Any]:
    return [read(one) for one in _values(answer)]


def _truth(word: str) -> bool:
    if word not in ("true", "false"):
        raise ValueError("Write true, false, or both separated by a comma")
    return word == "true"


def _number(word: str) -> int | float:
    number = float(word)
    return int(number) if number.is_integer() else number
