"""Which columns are the categories of one variable: from a schema, or from names of columns."""

import re
from typing import Any

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
