"""Run the notebooks of docs/gallery and keep their outputs: ``make notebooks``.

What would differ from run to run or machine to machine without a reader's gain is left out.
"""

import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

GALLERY = Path(__file__).parent.parent / "docs" / "gallery"


def run(path: Path) -> None:
    """Run one notebook from top to bottom and write it back with its outputs.

    Raises nbclient.exceptions.CellExecutionError at the first cell that fails.
    """
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(GALLERY)}}
    NotebookClient(notebook, timeout=600, resources=resources, record_timing=False).execute()
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.get("name") != "stderr", output.text
            html = output.get("data", {}).get("text/html")
            if html:  # scikit-learn numbers its diagrams by how many there have been
                output["data"]["text/html"] = re.sub(
                    r"sk-container-id-\d+", f"sk-{path.stem}", html
                )
    nbformat.write(notebook, path)


def main() -> None:
    """Run all notebooks, or those whose names hold what is given."""
    wanted = sys.argv[1:] or [""]
    for path in sorted(GALLERY.glob("*.ipynb")):
        if any(part in path.stem for part in wanted):
            began = time.perf_counter()
            run(path)
            print(
                f"{path.stem}: {time.perf_counter() - began:.0f} s, {path.stat().st_size:,} bytes"
            )


if __name__ == "__main__":
    main()
