"""The largest weights of a model, with what is known of their error."""

from typing import Any

from rich.markup import escape

from dplasso.cli.output import print_table, print_text


def print_weights(heaviest: list[dict[str, Any]], title: str) -> None:
    """Print what `dplasso.model.weights.Weights.rows` lists."""
    if not heaviest:
        return
    from dplasso.model.weights import BY_NOISE

    headings = ["column (from 0)" if heaviest[0]["name"] is None else "column", ">weight"]
    rows = [
        [escape(one["name"] or f"{one['column']:,}"), f"{one['weight']:+.3f}"] for one in heaviest
    ]
    if "class" in heaviest[0]:
        headings.insert(0, "class")
        for row, one in zip(rows, heaviest, strict=True):
            row.insert(0, str(one["class"]))
    if heaviest[0]["z"] is not None:
        headings += [">standard error", ">z"]
        for row, one in zip(rows, heaviest, strict=True):
            row += [f"{one['standard_error']:.3f}", f"{one['z']:+.1f}"]
    elif heaviest[0]["steps"] is not None:
        headings.append(">steps")
        for row, one in zip(rows, heaviest, strict=True):
            row.append(f"{one['steps']:,}")
    doubtful = [one["clear"] is False for one in heaviest]
    if any(doubtful):
        headings.append("")
        for row, by_noise in zip(rows, doubtful, strict=True):
            row.append("~" if by_noise else "")
    print_table(headings, rows, title=title)
    if any(doubtful):
        print_text(f"~ {BY_NOISE}", "dim")
