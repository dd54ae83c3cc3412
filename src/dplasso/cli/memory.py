"""``--memory``: an amount of memory with a unit."""

import re
from typing import Annotated

import typer

_UNITS = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "KI": 2**10,
    "MI": 2**20,
    "GI": 2**30,
    "TI": 2**40,
}
_AMOUNT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?I?)B?", re.IGNORECASE)
SMALLEST = 64 * 2**20


def parse_memory(text: str) -> int:
    """Read an amount of memory.

    Parameters
    ----------
    text : str
        A number of bytes, or with a unit: ``2GB`` (10^9 each), ``2GiB`` (2^30 each), ``500MB``.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    typer.BadParameter
        If it is none, or less than `SMALLEST`.
    """
    found = _AMOUNT.fullmatch(text.strip())
    unit = found.group(2).upper() if found else ""
    if found is None or unit not in _UNITS:
        raise typer.BadParameter(
            f"{text!r} is no amount of memory; write 2GB or 500MB, for example"
        )
    amount = int(float(found.group(1)) * _UNITS[unit])
    if amount < SMALLEST:
        raise typer.BadParameter(f"{text} is too little; {SMALLEST // 2**20}MiB is the least")
    return amount


Memory = Annotated[
    str,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Memory to use in all, for example 2GB or 500MB; the disk does the rest.",
    ),
]
