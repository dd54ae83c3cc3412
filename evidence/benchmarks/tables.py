"""Numbers and tables in Markdown."""

from collections.abc import Sequence


def seconds_text(value: float) -> str:
    """Write a time with three digits and a fitting unit."""
    if value == 0.0:
        return "0 s"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 1.0:
            return f"{value * factor:,.3g} {unit}" if value < 1000 else f"{value:,.0f} s"
    return f"{value * 1e9:.3g} ns"


def ratio(above: float, below: float) -> str:
    """Write how many times larger one number is."""
    if below <= 0.0:
        return "-"
    value = above / below
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table."""
    if not rows:
        return "(nothing measured)"
    lines = [list(head), ["---"] * len(head), *[list(row) for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
