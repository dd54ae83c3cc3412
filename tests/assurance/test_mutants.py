"""The planted bugs: the framework, the list, and the fast selection of them.

All of them: `python -m assurance.mutants`.
"""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from assurance.mutant_list import MUTANTS
from assurance.mutants import ROOT, SOURCE, mutate, run_tests

EXAMPLE = next(mutant for mutant in MUTANTS if mutant.name == "half of zCDP's rho")


def test_the_list_is_long_enough_and_covers_every_area():
    assert len(MUTANTS) >= 40
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    areas = Counter(mutant.area for mutant in MUTANTS)
    assert set(areas) == {"step", "leak", "accounting", "randomness", "selection", "integrity"}
    assert min(areas.values()) >= 5


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_mutant_fits_the_source_and_names_a_test(mutant):
    source = (SOURCE / mutant.file).read_text()
    changed = mutate(source, mutant)
    assert changed != source
    compile(changed, mutant.file, "exec")
    path, *names = mutant.test.split("[")[0].split("::")
    text = (ROOT / path).read_text()
    for name in names:
        assert f"def {name}(" in text or f"class {name}:" in text, name


def test_the_fast_selection_is_caught():
    command = [sys.executable, "-m", "assurance.mutants", "--fast", "--json"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    report = json.loads(run.stdout)
    missed = [entry for entry in report["mutants"] if entry["verdict"] != "caught"]
    assert missed == []
    assert report["unchanged_copy_passes"], report["controls"]
    assert run.returncode == 0
    assert report["caught"] == report["planted"] >= 15


class TestFramework:
    """In a process of its own, since this one has imported the package already."""

    def verdict(self, mutant):
        code = (
            "import json, sys\n"
            "from assurance.mutants import Mutant, run_tests\n"
            "mutant = Mutant(**json.loads(sys.argv[1]))\n"
            "print(run_tests(mutant, [mutant.test], mutant.compiled).verdict)\n"
        )
        command = [sys.executable, "-c", code, json.dumps(vars(mutant))]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
        return run.stdout.strip()

    def test_a_harmless_change_is_missed(self):
        assert self.verdict(replace(EXAMPLE, replace="    return eps0 * eps0 / 8\n")) == "missed"

    @pytest.mark.parametrize("text", ["    return eps0 *\n", "    return undefined\n"])
    def test_a_change_that_only_stops_the_program_is_broken(self, text):
        assert self.verdict(replace(EXAMPLE, replace=text)) == "broken"

    def test_a_test_that_is_not_there_is_broken(self):
        gone = replace(EXAMPLE, test=EXAMPLE.test.split("::")[0] + "::test_nothing")
        assert self.verdict(gone) == "broken"

    @pytest.mark.parametrize("text", ["no such text", "eps0"])
    def test_a_text_that_does_not_occur_exactly_once_is_refused(self, text):
        with pytest.raises(ValueError, match=r"times in .*, not once"):
            run_tests(replace(EXAMPLE, find=text), [EXAMPLE.test], False)
