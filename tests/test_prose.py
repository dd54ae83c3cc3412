"""The check of the wording of docs finds what it is made for, and nothing in plain text."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parent.parent / "tools" / "prose.py"
EXAMPLE = "# A page\n\n    dplasso --help\n\n"
LONG = " ".join(["word"] * 36)


def findings(folder, text):
    """Run a copy of the check on a page of its own, and return what it prints and its exit code."""
    (folder / "tools").mkdir()
    (folder / "docs").mkdir()
    (folder / "docs" / "page.md").write_text(text)
    check = folder / "tools" / "prose.py"
    check.write_text(CHECK.read_text())
    command = [sys.executable, str(check), str(folder / "docs" / "page.md")]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout, done.returncode


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (f"{EXAMPLE}{LONG}.\n", "page.md:5: 36 words in one sentence"),
        (EXAMPLE + "One is short. " * 7, "page.md:5: 7 sentences in one paragraph"),
        (EXAMPLE + "This is as good as private.\n", "page.md:5: 'as good as'"),
        (EXAMPLE + "The AUC is .9 here.\n", "page.md:5: .9: write 0.9"),
        ("# A page\n\nWords.\n", "page.md:1: no example in the first 40 lines"),
    ],
)
def test_it_finds(tmp_path, text, finding):
    printed, code = findings(tmp_path, text)
    assert finding in printed
    assert code == 1


@pytest.mark.parametrize(
    "text",
    [
        f"{EXAMPLE}| a cell |\n|---|\n| {LONG} and .9 |\n",
        f"{EXAMPLE}```python\nx = .9  # {LONG}\n```\n",
        f"{EXAMPLE}{LONG.replace('word', 'a', 1)[:-5]}. Another sentence.\n",
    ],
)
def test_it_accepts(tmp_path, text):
    assert findings(tmp_path, text) == ("", 0)
