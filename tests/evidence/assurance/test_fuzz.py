"""Spoilt inputs are read rightly or refused; and the fuzzer notices what goes wrong."""

import json
import textwrap
from pathlib import Path

import pytest
from evidence.assurance.fuzz import judge
from evidence.assurance.fuzz_coverage import COVERED
from evidence.assurance.fuzz_targets import input_of, targets
from hypothesis import given, settings
from hypothesis import strategies as st

from processes import python

TARGETS = targets()
REGRESSIONS = Path(__file__).parent / "regressions"
BYTES = sorted(set(COVERED) & set(TARGETS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_spoilt_was_valid(name, folder):
    for data in TARGETS[name].seeds():
        outcome, why = judge(TARGETS[name], data, folder / "input")
        # Two of the text files are malformed on purpose, and one command has nothing to resume.
        assert outcome == "accepted" or name in ("svmlight", "compressed", "command line"), why
        assert outcome != "failed", why


@pytest.mark.parametrize("name", sorted(set(TARGETS) - {"command line"}))
def test_spoilt_inputs_are_read_rightly_or_refused(name, folder):
    outcomes = set()

    @settings(max_examples=150)
    @given(seed=st.integers(1, 2**63), index=st.integers(0, 2**63))
    def check(seed, index):
        outcome, why = judge(TARGETS[name], input_of(TARGETS[name], seed, index), folder / "input")
        outcomes.add(outcome)
        assert not why

    check()
    assert "refused" in outcomes


@pytest.mark.parametrize("name", BYTES)
def test_any_bytes_are_read_rightly_or_refused(name, folder):
    @settings(max_examples=100)
    @given(data=st.binary(max_size=200))
    def check(data):
        assert judge(TARGETS[name], data, folder / "input")[1] == ""

    check()


@settings(max_examples=25)
@given(index=st.integers(0, 2**63))
def test_command_lines_end_in_an_answer_or_one_sentence(folder, index):
    target = TARGETS["command line"]
    assert judge(target, input_of(target, 1, index), folder / "input")[1] == ""


def test_inputs_that_once_failed_do_so_no_more(folder):
    files = sorted(path for path in REGRESSIONS.glob("*/*"))
    assert files
    for path in files:
        outcome, why = judge(TARGETS[path.parent.name], path.read_bytes(), folder / "input")
        assert not why, path
        assert outcome == "refused", path


def test_an_input_is_made_again_from_seed_and_number():
    for target in TARGETS.values():
        made = [input_of(target, 3, index) for index in range(20)]
        assert made == [input_of(target, 3, index) for index in range(20)]
        assert len(set(made)) > 10
        assert made != [input_of(target, 4, index) for index in range(20)]


# What a broken reader might do with one input in seven.
FAULTS = {
    "misread": ("raise fuzz_targets.Misread('wrong')", "Misread"),
    "exception": ("raise KeyError('x')", "KeyError"),
    "crash": ("os.kill(os.getpid(), signal.SIGSEGV)", "crash"),
    "exit": ("os._exit(3)", "crash"),
    "hang": ("time.sleep(60)", "hang"),
}


def test_a_planted_fault_is_counted(tmp_path):
    # One process for all: it takes seconds to start.
    script = textwrap.dedent("""
        import json, os, signal, sys, time
        from dataclasses import replace
        from pathlib import Path
        from evidence.assurance import fuzz, fuzz_targets
        fuzz._PATIENCE = 1.0
        target = fuzz_targets.targets()["svmlight"]
        for name, (action, _) in FAULTS.items():
            made = []
            def check(data, folder):
                made.append(data)
                if len(made) == 7:
                    exec(action)
                return "refused"
            fuzz.targets = lambda: {"svmlight": replace(target, check=check)}
            options = {"inputs": 10, "coverage": False, "keep": Path(FOLDER) / name}
            (given,) = fuzz.split(**options).values()
            print(json.dumps(fuzz.measure(**given)), flush=True)
    """)
    script = f"FAULTS = {FAULTS!r}\nFOLDER = {str(tmp_path)!r}\n{script}"
    reports = map(json.loads, python("-c", script).stdout.splitlines())
    for (name, (_, kind)), tally in zip(FAULTS.items(), reports, strict=True):
        assert (tally["passed"], tally["failures"], tally["failed"]) == (False, {kind: 1}, 1)
        assert tally["inputs"] == tally["refused"] + 1 == 10
        # The seventh judged, the first of them the warm-up.
        assert tally["examples"][0]["input"] == 5
        kept = tmp_path / name / "svmlight-0-5"
        assert kept.read_bytes() == input_of(TARGETS["svmlight"], 0, 5)
