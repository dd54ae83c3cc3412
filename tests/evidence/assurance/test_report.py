"""The page of figures: made of the parts' own reports, honest about what failed or is missing."""

import json
import sys
from dataclasses import replace

import pytest
from evidence.assurance.parts import PARTS, counts_of

from evidence.assurance import report

RANDOM = next(part for part in PARTS if part.name == "randomness")


def says(code, **changes):
    """Give a part whose command is a line of Python."""
    return replace(RANDOM, command=("-c", code), quick=("-c", code), **changes)


FIGURES = {"words": 7, "tests": 2, "smallest_p_value": 0.5, "alarm": 1e-6, "passed": True}


def test_small_parts_are_run_and_written(tmp_path, capsys):
    chosen = ["--only", "randomness", "--only", "store-crashes"]
    assert report.main(["--quick", "--out", str(tmp_path), "--jobs", "1", *chosen]) == 0
    kept = json.loads((tmp_path / "randomness.json").read_text())
    assert kept["passed"]
    assert kept["version"]
    assert kept["machine"]["cores"] >= 1
    assert set(kept["machine"]) == {"processor", "cores", "memory_gib", "python", "versions"}
    text = (tmp_path / "assurance.md").read_text()
    missing = len(PARTS) - 2
    assert f"**2 of {len(PARTS)} parts passed, {missing} not run yet.**" in text
    assert "`python -m evidence.assurance.randomness`" in text
    assert "not run" in text
    told = capsys.readouterr().err
    assert "store-crashes: begun" in told
    assert "randomness: passed" in told
    for word in (sys.prefix, str(report.ROOT), str(tmp_path)):
        assert word not in text + json.dumps(kept)


def test_every_part_has_a_small_version_and_a_command_to_show():
    assert len({part.name for part in PARTS}) == len(PARTS)
    for part in PARTS:
        assert part.quick != part.command
        assert str(report.ROOT) not in part.shown


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit(1)", "exit code 1"),
        ("print('no JSON')", "exit code 0"),
        (f"print({json.dumps(json.dumps(FIGURES | {'passed': False}))})", "7 words"),
        (f"import sys; print({json.dumps(json.dumps(FIGURES))}); sys.exit(1)", "7 words"),
        (f"import os; print({json.dumps(json.dumps(FIGURES))}, flush=True); os.abort()", "7 words"),
    ],
)
def test_a_part_that_fails_is_told(code, words, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "PARTS", (says(code),))
    assert report.main(["--quick", "--out", str(tmp_path)]) == 1
    text = (tmp_path / "assurance.md").read_text()
    assert "**0 of 1 parts passed.**" in text
    assert f"**FAILED**: {words}" in text
    assert "randomness: FAILED" in capsys.readouterr().err


def test_what_is_there_and_passed_is_not_made_again(tmp_path, monkeypatch):
    good = f"print({json.dumps(json.dumps(FIGURES))})"
    monkeypatch.setattr(report, "PARTS", (says(good),))
    options = ["--quick", "--out", str(tmp_path)]
    assert report.main(options) == 0
    # From now on it would fail, if it were run.
    monkeypatch.setattr(report, "PARTS", (says("import sys; sys.exit(1)"),))
    assert report.main([*options, "--resume"]) == 0
    assert report.main([*options, "--page"]) == 0
    assert "**1 of 1 parts passed.**" in (tmp_path / "assurance.md").read_text()
    assert report.main(options) == 1
    assert report.main([*options, "--resume"]) == 1


def test_a_refuted_claim_is_what_the_papers_part_asks_for(tmp_path, monkeypatch):
    paper = next(part for part in PARTS if part.name == "audit-paper")
    assert paper.exit_code == 3
    figures = json.dumps({"verdict": "violation", "findings": []})
    for code, passed in ((3, True), (0, False)):
        line = f"import sys; print({figures!r}); sys.exit({code})"
        kept = report.run_part(replace(paper, quick=("-c", line)), quick=True)
        assert kept["passed"] == passed


def test_small_figures_do_not_reach_the_page():
    with pytest.raises(SystemExit) as ended:
        report.main(["--quick"])
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("line", "tests", "passed"),
    [
        ("12 passed in 3.1s", 12, True),
        ("1 failed, 11 passed in 3.1s", 11, False),
        ("11 passed, 1 skipped in 3.1s", 11, False),
        ("2 errors in 1s", 0, False),
        ("no tests ran in 0.1s", 0, False),
        ("", 0, False),
    ],
)
def test_counts_of_tests(line, tests, passed):
    assert counts_of(f"....\n{line}\n") == {"tests": tests, "passed": passed}


def test_the_page_is_written_from_the_results_that_are_kept():
    results = report.read_results(report.ROOT / "assurance" / "results")
    assert set(results) == {part.name for part in report.PARTS}
    assert all(kept["passed"] for kept in results.values())
    assert report.page(results) == (report.ROOT / "docs" / "assurance.md").read_text()


def test_draws_are_compared_with_the_closed_form(capsys, monkeypatch):
    from evidence.assurance import draws

    cases = {name: draws.HARD[name] for name in ("ties", "zeros")}
    monkeypatch.setattr(draws, "HARD", cases)
    monkeypatch.setattr(draws, "PRIVATE", {"bucket": draws.PRIVATE["bucket"]})
    assert draws.main(["--draws", "20000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["draws"] == 100_000
    assert found["smallest_p_value"] > found["alarm"]
    # Twice the exponent that is claimed.
    honest = draws.PRIVATE["bucket"]
    monkeypatch.setattr(draws, "PRIVATE", {"bucket": lambda n, e: honest(n, 2 * e)})
    assert draws.main(["--draws", "20000"]) == 1
    assert "FAILED" in capsys.readouterr().out
