"""The messages of the package, read off its source."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from dplasso.errors import EXTRAS

SOURCE = Path(__file__).parent.parent / "src" / "dplasso"

KINDS = {
    "BudgetError": "A ledger has not enough left",
    "LedgerError": "A ledger cannot be used",
    "CheckpointError": "A checkpoint cannot be resumed",
    "ModelFileError": "A model file cannot be read",
    "StoreError": "A store cannot be read",
    "ClusterError": "A cluster cannot be used, or was lost",
    "MissingExtraError": "A package is not installed",
    "DataError": "Data cannot be used",
    "ParameterError": "A parameter is wrong",
    "ParameterTypeError": "A parameter has a wrong type",
    "ValueError": "A setting is wrong",
    "warn": "Warnings",
}
# What these raise as ValueError is for developers, or the reason inside another message.
_INNER = ("files", "model", "checkpoint", "selection", "frank_wolfe", "gradient_descent", "matrix")


def messages() -> dict[str, list[str]]:
    """Return the messages by kind, sorted; a name in braces stands for what is filled in."""
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for path in sorted(SOURCE.rglob("*.py")):
        inner = path.relative_to(SOURCE).parts[0] in _INNER
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                for kind, text in _said(node):
                    if not (inner and kind == "ValueError"):
                        found[kind].add(text)
    return {kind: sorted(texts, key=str.lower) for kind, texts in found.items()}


def _said(node: ast.Call) -> Iterator[tuple[str, str]]:
    """Yield kind and text of the message that a call makes, if it makes one."""
    kind = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
    texts = [_message(one) for one in node.args]
    if kind in ("need", "missing") and all(texts) and texts:
        extra = f"pip install 'dplasso[{EXTRAS[texts[0]]}]'"
        yield "MissingExtraError", f"{texts[1]} needs {texts[0]}, which is not installed: {extra}"
    elif kind in KINDS and texts and len(re.sub(r"\{[^}]*\}", "", texts[0]).split()) > 2:
        advice = [_message(one.value) for one in node.keywords if one.arg == "advice"]
        yield kind, "; ".join([texts[0], *filter(None, advice)])


def _message(node: ast.expr) -> str:
    """Return a message as written, a name in braces for what is filled in; empty if it is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return " ".join(node.value.split())
    if isinstance(node, ast.JoinedStr):
        parts = [
            one.value if isinstance(one, ast.Constant) else f"{{{_name(one.value)}}}"
            for one in node.values
            if isinstance(one, ast.Constant | ast.FormattedValue)
        ]
        return " ".join("".join(map(str, parts)).split())
    return ""


def _name(node: ast.expr) -> str:
    """Return a short name of what fills a place."""
    names = [
        one.attr if isinstance(one, ast.Attribute) else one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute | ast.Name)
    ]
    return names[0].strip("_") if len(names) == 1 else "..."
