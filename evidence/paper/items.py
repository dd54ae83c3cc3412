"""The paper's tables and figures by name."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from evidence.items import ROOT, Item, Recipe, Settings
from evidence.paper import figures, table1, table2, table3, table4
from evidence.published import PAPER
from evidence.report import (
    fill,
    measured_on,
    report_html,
    report_markdown,
    write_files,
    write_item,
)
from evidence.runner import published

ITEMS = {
    "table1": Recipe(table1.cells, table1.present),
    "table2": Recipe(table2.cells, table2.present),
    "figure1": Recipe(figures.cells, figures.figure1),
    "figure2": Recipe(figures.cells, figures.figure2),
    "figure3": Recipe(figures.cells, figures.figure3),
    "figure4": Recipe(figures.cells, figures.figure4),
    "table3": Recipe(table3.cells, table3.present),
    "table4": Recipe(table4.cells, table4.present),
}
# Those that can do without data sets.
UNSOURCED = {"table1", "table2"}
TITLE = f"Reproduction of {PAPER}"
ABOUT = (
    "What the paper reports beside what dplasso measures, once in the paper's own way "
    "(`mechanism='paper'`, Algorithm 2 as printed) and once corrected. The paper's mechanism is "
    "not differentially private at any epsilon; docs/paper.md says why. Everything here depends "
    "on the data: it is for public data sets."
)


def publish(
    items: Sequence[Item], _settings: Settings, folder: Path
) -> Mapping[str, Mapping[str, Path]]:
    """Write the files of each item and, where all are there, the report; return the paths."""
    files = {item.name: write_item(item, folder) for item in items}
    if folder == published("paper"):
        for page in sorted((ROOT / "docs").glob("paper*.md")):
            filled = fill(page.read_text(), items).encode()
            files[page.stem] = write_files({"md": filled}, page.parent, page.stem)
    if len(items) == len(ITEMS):
        parts = ABOUT, measured_on()
        texts = {
            "html": report_html(TITLE, parts, items),
            "md": report_markdown(TITLE, parts, items),
        }
        contents = {kind: text.encode() for kind, text in texts.items()}
        files["report"] = write_files(contents, folder, "report")
    return files
