"""The whole report: one HTML file with everything in it, and one Markdown file."""

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path

from dplasso.files.atomic import atomic_write
from evidence.paper.items import Item, markdown, picture
from evidence.paper.machine import describe_machine, machine_line
from evidence.paper.published import PAPER

TITLE = f"Reproduction of {PAPER}"
ABOUT = (
    "What the paper reports beside what dplasso measures, once in the paper's own way "
    "(`mechanism='paper'`, Algorithm 2 as printed) and once corrected. The paper's mechanism is "
    "not differentially private at any epsilon; docs/paper.md says why. Everything here depends "
    "on the data: it is for public data sets."
)
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


def report_markdown(items: Sequence[Item]) -> str:
    """Write the report as Markdown; the pictures lie beside it."""
    parts = [f"# {TITLE}", ABOUT, f"Measured on: {machine_line(describe_machine())}."]
    return "\n\n".join([*parts, *(markdown(item, 2) for item in items)]) + "\n"


def _inline(text: str) -> str:
    marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text, quote=False))
    return marked.replace(" ± ", "&nbsp;±&nbsp;")


def _section(item: Item) -> str:
    image = base64.b64encode(picture(item, "png")).decode()
    head = "".join(f"<th>{_inline(cell)}</th>" for cell in item.head)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>\n"
        for row in item.rows
    )
    return "\n".join(
        [
            f'<h2 id="{item.name}">{_inline(item.title)}</h2>',
            *(f"<p>{_inline(paragraph)}</p>" for paragraph in item.paragraphs),
            '<div class="wide"><table>',
            f"<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>",
            f'<img alt="{html.escape(item.title)}" src="data:image/png;base64,{image}">',
        ]
    )


def report_html(items: Sequence[Item]) -> str:
    """Write the report as one HTML page without links to other files."""
    links = "".join(f'<a href="#{item.name}">{item.name}</a>' for item in items)
    body = "\n".join(
        [
            f"<h1>{_inline(TITLE)}</h1>",
            f"<p>{_inline(ABOUT)}</p>",
            f"<p>Measured on: {_inline(machine_line(describe_machine()))}.</p>",
            f"<nav>{links}</nav>",
            *(_section(item) for item in items),
        ]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_inline(TITLE)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def write_report(items: Sequence[Item], folder: Path) -> dict[str, Path]:
    """Write ``report.html`` and ``report.md``, each whole or not at all.

    Parameters
    ----------
    items : sequence of Item
        What to report.
    folder : Path
        Where; the items' own files should be there too.

    Returns
    -------
    dict of str to Path
        By kind: ``html``, ``md``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for kind, text in (("html", report_html(items)), ("md", report_markdown(items))):
        files[kind] = folder / f"report.{kind}"
        with atomic_write(files[kind]) as file:
            file.write(text.encode())
    return files
