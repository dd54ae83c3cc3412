"""The framework of planted bugs, and the fast selection of them.

All of them: `python -m evidence assurance/mutants`; the list: `test_anchors.py`.
"""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from evidence.assurance.mutants import MUTANTS, mutated, run_tests
from evidence.items import ROOT

from processes import python

EXAMPLE = next(mutant for mutant in MUTANTS if mutant.name == "half of zCDP's rho")


@pytest.mark.slow
def test_the_fast_selection_is_caught():
    command = [sys.executable, "-m", "evidence", "assurance/mutants", "--fast", "--json"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    (report,) = json.loads(run.stdout)["cells"]
    missed = [entry for entry in report["mutants"] if entry["verdict"] != "caught"]
    assert missed == []
    assert report["unchanged_copy_passes"], report["controls"]
    assert run.returncode == 0
    assert report["caught"] == report["planted"] >= 15


# What becomes of a change to the example, by the text put in and the test named.
ACCOUNTING = EXAMPLE.test.split("::")[0]
VERDICTS = [
    (EXAMPLE, "caught"),
    (replace(EXAMPLE, replace="    return eps0 * eps0 / 8\n"), "missed"),
    (replace(EXAMPLE, replace="    return eps0 *\n"), "broken"),
    (replace(EXAMPLE, replace="    return undefined\n"), "broken"),
    (replace(EXAMPLE, test=f"{ACCOUNTING}::test_nothing"), "broken"),
]


def test_only_a_failed_assertion_of_the_named_test_counts():
    # In a process of its own: this one has imported the package already.
    code = (
        "import json, sys\n"
        "from evidence.assurance.mutants import Mutant, run_tests\n"
        "for given in json.loads(sys.argv[1]):\n"
        "    mutant = Mutant(**given)\n"
        "    print(run_tests(mutant, [mutant.test], mutant.compiled).verdict)\n"
    )
    given = json.dumps([vars(mutant) for mutant, _ in VERDICTS])
    assert python("-c", code, given).stdout.split() == [verdict for _, verdict in VERDICTS]


@pytest.mark.parametrize(
    "change", [{"find": "no such text"}, {"find": "eps0"}, {"within": "no_such_function"}]
)
def test_an_anchor_that_does_not_fit_exactly_once_is_refused_by_name(change):
    with pytest.raises(ValueError, match=r"half of zCDP's rho.* \d times in .*, not once"):
        run_tests(replace(EXAMPLE, **change), [EXAMPLE.test], False)


def test_an_anchor_holds_whatever_the_layout():
    laid_out = "return  eps0\n  *eps0\n  / 8.0"
    assert mutated(replace(EXAMPLE, find=laid_out)) == mutated(EXAMPLE)
    path, text = mutated(replace(EXAMPLE, replace="if eps0:\n    return 0.0\nreturn 1.0"))
    assert path == "privacy/accounting.py"
    assert "\n    if eps0:\n        return 0.0\n    return 1.0\n" in text
