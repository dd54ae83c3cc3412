"""What planted.toml and docs/assurance-cases.md name is there; docs/assurance.md is up to date."""

import re
from collections import Counter

import pytest
from evidence.assurance.mutants import AUDITED, MUTANTS, SOUND, SOURCE, mutated
from evidence.items import ROOT, Settings
from evidence.runner import published

from evidence.assurance import items
from processes import python

PAGE = (ROOT / "docs" / "assurance-cases.md").read_text()
# `folder/test_file.py::name::name`, or `::name` for another test of the file named before it.
NAMED = re.compile(r"`((?:[\w/]+\.py)?(?:::[\w…]+)*)`")


def assert_there(test):
    path, *names = test.split("[")[0].split("::")
    text = (ROOT / path).read_text()
    for name in names:
        assert re.search(rf"^\s*(def|class) {name}\b", text, re.MULTILINE), test


@pytest.mark.parametrize("module", ["evidence.__main__", "evidence.assurance.mutants"])
def test_what_plants_bugs_does_not_hold_the_package(module):
    """Or the process that runs a test would find it in place of its copy."""
    code = f"import sys, {module}; print('dplasso' in sys.modules)"
    assert python("-c", code).stdout == "False\n"


def test_the_list_is_long_enough_and_covers_every_area():
    names = [mutant.name for mutant in MUTANTS] + [entry["name"] for entry in AUDITED]
    assert len(set(names)) == len(names) >= 200
    assert len(AUDITED) >= 8
    areas = Counter(mutant.area for mutant in MUTANTS)
    assert set(areas) == {
        *("step", "leak", "accounting", "randomness", "selection", "integrity", "tuning")
    }
    assert min(areas.values()) >= 5


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_mutant_fits_the_source_and_names_a_test(mutant):
    path, changed = mutated(mutant)
    assert changed != (SOURCE / path).read_text()
    compile(changed, path, "exec")
    assert_there(mutant.test)


def test_audits_of_broken_implementations_are_there():
    for test in (*SOUND, *(entry["test"] for entry in AUDITED)):
        assert_there(test)


def test_every_test_that_the_page_of_cases_names_is_there():
    found, path = set(), ""
    for cell in re.findall(r"^\|[^|]*\|([^|]*)\|$", PAGE, re.MULTILINE):
        for text in NAMED.findall(cell):
            head, *names = text.split("::")
            path = head or path
            found.add("::".join([f"tests/{path}", *(name for name in names if name != "…")]))
    assert len(found) > 50
    for test in found:
        assert_there(test)


def test_the_page_is_written_from_the_results_that_are_kept():
    text = items.page(Settings(), published("assurance"))
    assert f"**{len(items.PARTS)} of {len(items.PARTS)} parts passed.**" in text
    assert text == (ROOT / "docs" / "assurance.md").read_text()
