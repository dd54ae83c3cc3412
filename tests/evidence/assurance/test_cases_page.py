"""Every test that docs/assurance-cases.md names is there."""

import re

import pytest
from evidence.items import ROOT

PAGE = (ROOT / "docs" / "assurance-cases.md").read_text()
# `folder/test_file.py::name::name`, or `::name` for another test of the file named before it.
NAMED = re.compile(r"`((?:[\w/]+\.py)?(?:::[\w…]+)*)`")


def named_tests():
    found, path = [], ""
    for cell in re.findall(r"^\|[^|]*\|([^|]*)\|$", PAGE, re.MULTILINE):
        for text in NAMED.findall(cell):
            head, *names = text.split("::")
            path = head or path
            found.append((path, tuple(name for name in names if name != "…")))
    return sorted(set(found))


def test_there_are_many():
    assert len(named_tests()) > 50


@pytest.mark.parametrize(("path", "names"), named_tests())
def test_a_named_test_exists(path, names):
    text = (ROOT / "tests" / path).read_text()
    for name in names:
        assert re.search(rf"^\s*(def|class) {name}\b", text, re.MULTILINE), name
