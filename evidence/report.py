"""What is written: an item's Markdown, CSV and pictures, and one report of many items."""

import base64
import csv
import html
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dplasso.files.disk import atomic_write
from evidence.items import Item, Table
from evidence.machine import describe_machine, machine_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DPI = 110
# Of methods, wherever they are drawn.
COLOURS = {
    "algorithm-1": "#000000",
    "algorithm-2": "#E69F00",
    "algorithm-2+3": "#D55E00",
    "algorithm-2+4": "#D55E00",
    "dplasso": "#0072B2",
}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
.wide { overflow-x: auto; }
td:first-child { white-space: nowrap; }
table { border-collapse: collapse; font-size: 0.85rem; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid #ddd; text-align: left; }
img { max-width: 100%; height: auto; margin-top: 1rem; }
code { background: #f2f2f2; padding: 0 0.2em; }
nav a { margin-right: 1rem; }
"""


def plain(axis: "Axes", title: str = "", *, grid: bool = False, legend: Any = None) -> None:
    """Give a panel the style of all pictures."""
    axis.set_title(title, fontsize=9, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    if grid:
        axis.grid(alpha=0.25)
    if legend is not None:
        axis.legend(frameon=False, fontsize=7, **legend)


def seconds_text(value: float) -> str:
    """Return a time with three digits and a fitting unit."""
    if value == 0.0:
        return "0 s"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 1.0:
            return f"{value * factor:,.3g} {unit}" if value < 1000 else f"{value:,.0f} s"
    return f"{value * 1e9:.3g} ns"


def ratio(above: float, below: float) -> str:
    """Return how many times larger one number is, as text."""
    if below <= 0.0:
        return "-"
    value = above / below
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def markdown_table(table: Table) -> str:
    lines = [table.head, ["---"] * len(table.head), *table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def grouped(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return rows without the first cell where it repeats the one above."""
    above = ["", *(row[0] for row in rows)]
    return [["" if row[0] == a else row[0], *row[1:]] for row, a in zip(rows, above, strict=False)]


def markdown(item: Item, level: int = 1) -> str:
    """Return an item as Markdown; its picture lies beside the file."""
    parts = (part if isinstance(part, str) else markdown_table(part) for part in item.parts)
    shown = [f"![{item.title}]({item.name}.png)"] if item.draw else []
    return "\n\n".join([f"{'#' * level} {item.title}", *parts, *shown])


def fill(page: str, items: Sequence[Item]) -> str:
    """Replace the tables of a page that stand between ``<!-- table3 -->`` and the end."""
    for item in items:
        table = next(markdown_table(part) for part in item.parts if isinstance(part, Table))
        shown = f"<!-- {item.name} -->\n{table}\n<!-- end -->"
        marks = rf"<!-- {item.name} -->\n.*?<!-- end -->"
        page = re.sub(marks, shown.replace("\\", r"\\"), page, flags=re.DOTALL)
    return page


def csv_text(item: Item) -> str:
    """Return an item's numbers as CSV: floats with six significant digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(item.data_head)
    writer.writerows([[_shown(value) for value in row] for row in item.data_rows])
    return text.getvalue()


def _shown(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else value


def picture(item: Item, kind: str) -> bytes:
    """Draw an item as ``png`` or ``svg``: the same bytes for the same numbers."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    assert item.draw is not None
    figure = Figure(figsize=item.size, layout="constrained")
    with mpl.rc_context({"svg.hashsalt": "dplasso", "font.size": 9}):
        item.draw(figure)
        into = io.BytesIO()
        stamp = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(into, format=kind, dpi=_DPI, metadata=stamp)
    return into.getvalue()


def measured_on(machines: Iterable[dict[str, Any]] = ()) -> str:
    """Return the line that says on what; on this machine, if none is named."""
    lines = [machine_line(one) for one in machines] or [machine_line(describe_machine())]
    return f"Measured on: {'; also '.join(lines)}."


def write_files(contents: dict[str, bytes], folder: Path, stem: str) -> dict[str, Path]:
    """Write ``STEM.KIND`` for each kind, each whole or not at all; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {kind: folder / f"{stem}.{kind}" for kind in contents}
    for kind, path in files.items():
        with atomic_write(path) as file:
            file.write(contents[kind])
    return files


def write_item(item: Item, folder: Path, kinds: Sequence[str] = ("png", "svg")) -> dict[str, Path]:
    """Write an item's files: Markdown, CSV if it has numbers, and pictures of some kinds."""
    contents = {kind: picture(item, kind) for kind in kinds if item.draw}
    contents["md"] = f"{markdown(item)}\n\n{measured_on()}\n".encode()
    if item.data_head:
        contents["csv"] = csv_text(item).encode()
    return write_files(contents, folder, item.name)


def report_markdown(title: str, parts: Sequence[str], items: Sequence[Item]) -> str:
    """Return a report as Markdown; the pictures lie beside it."""
    return "\n\n".join([f"# {title}", *parts, *(markdown(item, 2) for item in items)]) + "\n"


def _inline(text: str) -> str:
    marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text, quote=False))
    return marked.replace(" ± ", "&nbsp;±&nbsp;")


def _html(part: str | Table) -> str:
    if isinstance(part, str):
        return f"<p>{_inline(part)}</p>"
    head = "".join(f"<th>{_inline(cell)}</th>" for cell in part.head)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>\n"
        for row in part.rows
    )
    table = f"<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
    return f'<div class="wide"><table>\n{table}'


def _section(item: Item) -> str:
    lines = [f'<h2 id="{item.name}">{_inline(item.title)}</h2>', *map(_html, item.parts)]
    if item.draw:
        image = base64.b64encode(picture(item, "png")).decode()
        alt = html.escape(item.title)
        lines.append(f'<img alt="{alt}" src="data:image/png;base64,{image}">')
    return "\n".join(lines)


def report_html(title: str, parts: Sequence[str], items: Sequence[Item]) -> str:
    """Return a report as one HTML page without links to other files."""
    links = "".join(f'<a href="#{item.name}">{item.name}</a>' for item in items)
    body = [f"<h1>{_inline(title)}</h1>", *map(_html, parts), f"<nav>{links}</nav>"]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_inline(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join([*body, *map(_section, items)])
        + "\n</body>\n</html>\n"
    )
