"""The parameter `infer`: the budget of intervals, and what cannot be combined with them."""

from collections.abc import Iterable, Mapping
from typing import Any

from dplasso.errors import ParameterError

# Of the budget, unless the parameter says otherwise.
_SHARE = 0.5
_LARGEST = 0.9
_RIGHT = "`None`, 'all' or {'columns': 'all', 'share': S}"


def inference_share(params: Mapping[str, Any]) -> float:
    """Return the intervals' share of the budget, 0 without intervals; refuse what excludes them."""
    infer = params["infer"]
    if infer is None:
        return 0.0
    known = infer if isinstance(infer, Mapping) else {"columns": infer}
    columns, share = known.get("columns"), known.get("share", _SHARE)
    if _names_columns(columns):
        raise ParameterError(
            f"`infer` takes 'all' and not some columns, got {columns!r}: noise hides which "
            "other columns confound them",
            advice="choose up to 300 columns by what is public, and pass `infer='all'`",
        )
    if known.keys() - {"columns", "share"} or columns != "all":
        raise ParameterError(f"`infer` must be {_RIGHT}, got {infer!r}")
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0.0 < share <= _LARGEST:
        raise ParameterError(
            f"the share of `infer` must be a number above 0, up to {_LARGEST:g}, got {share!r}"
        )
    _check_others(params)
    return float(share)


def _names_columns(columns: Any) -> bool:
    """Return whether this is a list of columns, as in Python or on the command line."""
    return "," in columns if isinstance(columns, str) else isinstance(columns, Iterable)


def _check_others(params: Mapping[str, Any]) -> None:
    """Refuse parameters with which coefficients are not those of the user's columns."""
    if params["row_norm"] == "unit":
        raise ParameterError(
            "`infer` needs `row_norm` to be a number, a public bound on the L2 norm of a row. With "
            "'unit' every row is divided by its own length, and coefficients are not in the units "
            "of the columns"
        )
    others = ("max_weights", "class_weight", "prior", "public_data")
    for name in others:
        if params.get(name) is not None:
            raise ParameterError(
                f"`infer` and `{name}` cannot be combined: intervals are those of the plain loss "
                "in all columns. Leave one of them out"
            )
