"""The page of figures: what failed or is missing is told; and the load command, on a small case."""

import json
import sys
from dataclasses import replace

import pytest
from evidence.assurance.commands import Command, counts_of, recipe_of
from evidence.items import ROOT, Settings

from evidence import __main__ as command
from evidence.assurance import commands, draws, items, load

QUICK = Settings(quick=True)


def test_small_parts_are_run_and_written(tmp_path, capsys):
    part = "assurance/randomness"
    assert command.main([part, "--quick", "--out", str(tmp_path)]) == 0
    kept = json.loads((tmp_path / "cells" / "randomness.json").read_text())
    assert kept["result"]["passed"]
    assert kept["measured_on"]["cores"] >= 1
    text = (tmp_path / "assurance.md").read_text()
    missing = len(items.PARTS) - 1
    assert f"**1 of {len(items.PARTS)} parts passed, {missing} not run yet.**" in text
    assert "| `randomness` |" in text
    assert "not run" in text
    assert "randomness: done" in capsys.readouterr().err
    for word in (sys.prefix, str(ROOT), str(tmp_path)):
        assert word not in text + json.dumps(kept)
    # What has passed is not made again.
    before = (tmp_path / "cells" / "randomness.json").stat().st_mtime_ns
    assert command.main([part, "--quick", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "cells" / "randomness.json").stat().st_mtime_ns == before


def test_every_part_has_a_small_version():
    for name, part in items.PARTS.items():
        small, whole = (part.recipe.cells(settings) for settings in (QUICK, Settings()))
        assert [one.parameters for one in small] != [one.parameters for one in whole], name


FIGURES = """print('{"tests": 7, "passed": true}', flush=True)"""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('no JSON')", "exit code 0"),
        (FIGURES.replace("true", "false"), "7 tests"),
        (f"import sys; {FIGURES}; sys.exit(1)", "7 tests"),
        (f"import os; {FIGURES}; os.abort()", "7 tests"),
    ],
)
def test_a_part_that_fails_is_told(code, words, tmp_path, monkeypatch, capsys):
    part = Command("replay", "replays", ("-c", code), ("-c", code), commands.tests_words)
    changed = replace(items.PARTS["replay"], recipe=recipe_of(part))
    monkeypatch.setitem(items.ITEMS, "replay", changed.recipe)
    monkeypatch.setitem(items.PARTS, "replay", changed)
    assert command.main(["assurance/replay", "--quick", "--out", str(tmp_path)]) == 1
    text = (tmp_path / "assurance.md").read_text()
    assert f"**0 of {len(items.PARTS)} parts passed" in text
    assert f"**FAILED**: {words}" in text
    assert "replay: FAILED" in capsys.readouterr().err or words.startswith("exit")


def test_a_refuted_claim_is_what_the_papers_part_asks_for():
    figures = json.dumps({"verdict": "violation", "findings": []})
    for code, passed in ((3, True), (0, False)):
        line = f"import sys; print({figures!r}); sys.exit({code})"
        assert commands.run_command(("-c", line), 3)["passed"] == passed


@pytest.mark.parametrize(
    ("line", "tests", "passed"),
    [
        ("12 passed in 3.1s", 12, True),
        ("1 failed, 11 passed in 3.1s", 11, False),
        ("11 passed, 1 skipped in 3.1s", 11, False),
        ("no tests ran in 0.1s", 0, False),
    ],
)
def test_counts_of_tests(line, tests, passed):
    assert counts_of(f"....\n{line}\n") == {"tests": tests, "passed": passed}


def test_draws_are_compared_with_the_closed_form(monkeypatch):
    honest = draws.PRIVATE["bucket"]
    monkeypatch.setattr(draws, "HARD", {name: draws.HARD[name] for name in ("ties", "zeros")})
    monkeypatch.setattr(draws, "PRIVATE", {"bucket": honest})
    found = draws.measure(draws=20_000)
    assert (found["passed"], found["draws"]) == (True, 100_000)
    assert found["smallest_p_value"] > found["alarm"]
    # Twice the exponent that is claimed.
    monkeypatch.setattr(draws, "PRIVATE", {"bucket": lambda n, e: honest(n, 2 * e)})
    assert not draws.measure(draws=20_000)["passed"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "no list 'nothing'"),
        (["assurance/nothing"], "no item 'nothing'"),
        (["assurance/fuzz/nothing", "--quick"], "nothing to measure"),
    ],
)
def test_names_that_are_not_there(arguments, words, tmp_path, capsys):
    assert command.main([*arguments, "--out", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err


def test_a_case_is_run_and_measured(monkeypatch):
    # This process has done more than a fit.
    monkeypatch.setattr(load, "BASE_MIB", 2.0**16)
    case = replace(load.CASES["longest"], n_rows=50, n_columns=300, n_iter=40)
    result = load.run_case(case, 0)
    assert result["passed"]
    assert result["entries"] == load.make_data(case, 0)[0].nnz > 500
    assert 0 < result["nonzero_weights"] <= 40
    assert result["epsilon"] <= 1.0
    assert set(load.split()) == set(load.CASES)
    assert f"peak {result['peak_mib']:,} MiB" in load.section([result])[0]
    # More memory than promised fails.
    monkeypatch.setattr(load, "BASE_MIB", 1.0)
    assert not load.run_case(case, 0)["passed"]
