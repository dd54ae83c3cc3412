"""Put the tables of ``evidence/results/paper`` into docs/paper.md.

    dplasso paper table3 --data ... --out evidence/results/paper
    python -m experiments.page

A table of the page stands between ``<!-- table3 -->`` and ``<!-- end -->``.
"""

import re
import sys
from pathlib import Path

RESULTS = Path(__file__).with_name("results")
PAGE = Path(__file__).parents[1] / "docs" / "paper.md"


def fill(page: str, results: Path = RESULTS) -> str:
    """Replace every marked table by the one measured last."""

    def table(found: re.Match[str]) -> str:
        lines = (results / f"{found[1]}.md").read_text().splitlines()
        rows = "\n".join(line for line in lines if line.startswith("|"))
        return f"<!-- {found[1]} -->\n{rows}\n<!-- end -->"

    return re.sub(r"<!-- (table\d|figure\d) -->\n.*?<!-- end -->", table, page, flags=re.DOTALL)


def main() -> int:
    """Rewrite the page; return the exit code."""
    PAGE.write_text(fill(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
