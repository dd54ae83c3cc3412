"""Killed fits go on as if nothing had been; and the command would notice if they did not."""

import json
import subprocess
import sys
import textwrap

import pytest

LEDGER = "charged to a ledger"
BEFORE = "import sys\nimport json\nfrom evidence.assurance import crashes\n"
# Planted faults, each of which a kill brings to light.
MUTANTS = {
    "written in place": """
        from contextlib import contextmanager
        from pathlib import Path
        import dplasso.files.archive
        @contextmanager
        def in_place(path, temporary=None):
            with Path(path).open("wb") as file:
                yield file
        dplasso.files.archive.atomic_write = in_place
        # What the process dies at is the opening of the file itself.
        crashes.MOMENTS = (("open", "after"), ("write", "after"))
    """,
    "resumed without its steps": """
        import dplasso.checkpoint.session as module
        from dataclasses import replace
        original = module.keep_checkpoints
        def forgetful(path, stored, seconds):
            begin = original(path, stored, seconds)
            return lambda begun: replace(begin(begun), prefix=None)
        module.keep_checkpoints = forgetful
    """,
    "charged again when resumed": """
        import dplasso.checkpoint.session as module
        from dplasso.privacy.ledger import charge_of, reserve
        module.take_charge = lambda ledger, dataset, mechanism, note, reached, notes: reserve(
            ledger, dataset, charge_of(mechanism)
        )
    """,
    "charged under a token that is nowhere written": """
        import dplasso.checkpoint.charge as module
        original = module.reserve
        module.reserve = lambda *given, token: original(*given)
    """,
    "the end noted without the model": """
        import dplasso.checkpoint.session as module
        module.digest_of = lambda transcript: "0" * 64
    """,
    "another seed after the kill": """
        from dplasso.frank_wolfe.release import VertexRelease
        VertexRelease.agrees_with = lambda self, other: True
        run_fit = crashes.run_fit
        def reseeded(options, data, folder):
            if (folder / "checkpoint").exists() and options["random_state"] is not None:
                options = options | {"random_state": options["random_state"] + 1}
            run_fit(options, data, folder)
        crashes.run_fit = reseeded
    """,
}


def crash(kills, changes="", fit=None):
    script = BEFORE + textwrap.dedent(changes)
    script += f"print(json.dumps(crashes.measure(kills={kills}, seed=3, fit={fit!r})))\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_killed_fits_end_as_they_should():
    report = crash(20)
    assert report["failures"] == []
    assert report["passed"]
    assert report["kills"] >= 20
    assert report["survived"] == report["trials"] > 5
    # In the midst of writes and elsewhere, with steps done.
    assert 0 < report["during_writes"] < report["kills"]
    assert report["steps_kept"] > 100


def test_a_fit_is_charged_once_however_often_it_is_killed():
    report = crash(25, fit=LEDGER)
    assert report["failures"] == []
    assert report["passed"]
    assert report["charged"] == report["survived"] == report["trials"] > 5
    assert report["at_charges"] >= 5


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_noticed(name):
    about_ledgers = name.startswith(("charged", "the end"))
    report = crash(12 if about_ledgers else 15, MUTANTS[name], LEDGER if about_ledgers else None)
    assert not report["passed"]
    assert report["failures"]
