"""Killed fits go on as if nothing had been; and the command would notice if they did not."""

import json
import textwrap

from processes import python

LEDGER = "charged to a ledger"
# Planted faults, each of which a kill of a fit of this kind brings to light.
MUTANTS = {
    "written in place": (
        "seeded",
        """
        from contextlib import contextmanager
        from pathlib import Path
        import dplasso.files.archive
        @contextmanager
        def in_place(path, temporary=None, private=False):
            with Path(path).open("wb") as file:
                yield file
        dplasso.files.archive.atomic_write = in_place
        # What the process dies at is the opening of the file itself.
        crashes.MOMENTS = (("open", "after"), ("write", "after"))
    """,
    ),
    "resumed without its steps": (
        "system entropy",
        """
        session.KeptFit.state = property(lambda self: {}, lambda self, state: None)
    """,
    ),
    "charged again when resumed": (
        LEDGER,
        """
        from dplasso.ledger import charge_of, reserve
        def take(self):
            return reserve(self._begun.method.ledger.path, None, charge_of(self._begun.budget))
        session.KeptFit._take = take
    """,
    ),
    "the end noted without the model": (
        LEDGER,
        """
        from dplasso.ledger import charging
        original = charging.finish
        charging.finish = lambda taken, release=None, **named: original(
            taken, release=release and "0" * 64, **named
        )
    """,
    ),
}


def crash(runs):
    """Return the report of each run, the number of kills and the kind of fit, faults planted.

    In one process, since its imports take longer than a run; each run in a fork of it.
    """
    script = """
import json, os, sys
from evidence.assurance import crashes
for name, (changes, given) in json.loads(sys.argv[1]).items():
    if os.fork() == 0:
        exec(changes, {"crashes": crashes, "session": crashes.session})
        print(json.dumps([name, crashes.measure(seed=3, **given)]), flush=True)
        os._exit(0)
    os.wait()
"""
    for name, given in runs.items():
        runs[name] = textwrap.dedent(MUTANTS.get(name, ("", ""))[1]), given
    done = python("-c", script, json.dumps(runs))
    reports = dict(map(json.loads, done.stdout.splitlines()))
    assert reports.keys() == runs.keys(), done.stderr
    return reports


def test_killed_fits_end_as_they_should():
    report = crash({"all kinds": {"kills": 20}})["all kinds"]
    assert (report["passed"], report["failures"]) == (True, [])
    assert report["kills"] >= 20
    assert report["survived"] == report["trials"] > 5
    # In the midst of writes, between phases and elsewhere, with phases and steps done.
    assert 0 < report["during_writes"] + report["between_phases"] < report["kills"]
    assert report["steps_kept"] > 100
    assert report["phases_kept"] > 10


def test_a_fit_is_charged_once_however_often_it_is_killed():
    report = crash({"": {"kills": 25, "fit": LEDGER}})[""]
    assert (report["passed"], report["failures"]) == (True, [])
    assert report["charged"] == report["survived"] == report["trials"] > 5
    assert report["at_charges"] >= 5


def test_planted_faults_are_noticed():
    runs = {name: {"kills": 12, "fit": fit} for name, (fit, _) in MUTANTS.items()}
    for name, report in crash(runs).items():
        assert (report["passed"], bool(report["failures"])) == (False, True), name
