"""The parts of `make assurance`, and the page of their figures, docs/assurance.md."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence.assurance import commands, crashes, draws, fuzz, load, mutants, randomness
from evidence.assurance.commands import AUDIT, PYTEST, Command, recipe_of
from evidence.cells import failed, kept
from evidence.items import ROOT, Item, Recipe, Settings, Table
from evidence.options import options_of
from evidence.report import grouped, markdown_table, write_files
from evidence.runner import published

_PAPER = (*AUDIT, "--mechanism", "paper", "--epsilon", "0.1")
_REPLACE = (*AUDIT, "--neighbors", "replace-one")
_SMALL = ("--runs", "400", "--canaries", "50")
_STEPS = "tests/evidence/assurance/test_replay.py"
_REFUSALS = ("tests/evidence/assurance/test_refusals.py", "tests/fit/test_neighbours.py")
_OWN = (*PYTEST, "-m", "evidence and not slow")
# Replays and refusals are in a part of their own, and only a small version leaves some of them out.
_OWN_REST = ("--ignore", _STEPS, "--ignore", _REFUSALS[0])
_OWN_QUICK = (
    *(f"tests/evidence/assurance/test_{name}.py" for name in ("draw_error", "random_words")),
    *(f"tests/evidence/assurance/test_{name}.py" for name in ("refusals", "report", "streams")),
    *("tests/evidence/test_cells.py", "tests/evidence/test_datasets.py"),
    *("tests/evidence/test_twins.py", "tests/evidence/paper/test_page.py"),
)
_PROCESSES = (*PYTEST, "tests/ledger/test_processes.py")
_ROUND_TRIPS = ("tests/encoding/round_trips.py",)
_RECORDED = ("tests/recorded_fits.py",)
_ISOLATED = ("tests/isolated_rows.py",)
_KILLED = ("tests/data/store/killed_conversions.py", "{folder}")


@dataclass(frozen=True)
class Part:
    """A row of the page: the area and what is counted."""

    section: str
    about: str
    recipe: Recipe


def _of(command: Command, section: str) -> tuple[str, Part]:
    return command.name, Part(section, command.about, recipe_of(command))


def _own(name: str, section: str, about: str, recipe: Recipe) -> tuple[str, Part]:
    return name, Part(section, about, recipe)


def _audit(name: str, about: str, arguments: tuple[str, ...], exit_code: int = 0) -> Command:
    small, words = (*arguments, *_SMALL), commands.audit_words
    return Command(f"audit-{name}", about, arguments, small, words, exit_code, weight=2.0)


def _tests(
    name: str, about: str, arguments: tuple[str, ...], quick: tuple[str, ...], weight: float
) -> Command:
    return Command(name, about, arguments, quick, commands.tests_words, weight=weight)


_RANDOMNESS, _FAULTS = "Randomness", "Faults injected and survived"
_BOUNDS = "Audited bounds against claims"
# In the order of the page.
PARTS = dict(
    (
        _own("randomness", _RANDOMNESS, randomness.TITLE, options_of("randomness", randomness)),
        _own("draws", _RANDOMNESS, draws.TITLE, options_of("draws", draws)),
        _of(_audit("default", "the default, add-remove", AUDIT), _BOUNDS),
        _of(_audit("replace-one", "the default, replace-one", _REPLACE), _BOUNDS),
        _of(_audit("paper", "the paper's mechanism, which must be refuted", _PAPER, 3), _BOUNDS),
        _of(
            _tests(
                "replay",
                "every solver, structure, form, layout and thread count",
                (*PYTEST, _STEPS, *_REFUSALS),
                (*PYTEST, _STEPS, "-k", "all_neighbours or exact_sum"),
                4.0,
            ),
            "Replay on neighbours",
        ),
        _of(
            Command(
                "recorder",
                "fits, searches and scores: every statistic before its noise",
                (*_RECORDED, "60"),
                (*_RECORDED, "2", "gradients"),
                commands.recorder_words,
                weight=4.0,
            ),
            "Replay on neighbours",
        ),
        _of(
            Command(
                "isolation",
                "a record that must not count, in any form and at any place",
                (*_ISOLATED, "600"),
                # What draws vertices takes minutes to compile.
                (*_ISOLATED, "60", "gradients", "scores", "edges"),
                commands.isolation_words,
                weight=4.0,
            ),
            "Row isolation",
        ),
        _own("crashes", _FAULTS, "fits with checkpoints", options_of("crashes", crashes)),
        _own(
            "ledger-crashes",
            _FAULTS,
            "fits charged to a ledger",
            options_of("ledger-crashes", crashes, fit=crashes.LEDGER),
        ),
        _of(
            _tests(
                "ledger-processes",
                "20 processes on one ledger, and killed ones",
                _PROCESSES,
                (*_PROCESSES, "-k", "last_drop"),
                1.0,
            ),
            _FAULTS,
        ),
        _of(
            Command(
                "store-crashes",
                "conversions over an old store",
                (*_KILLED, "replace"),
                (*_KILLED, "new"),
                commands.conversion_words,
            ),
            _FAULTS,
        ),
        _own("fuzz", "Malformed inputs", fuzz.TITLE, options_of("fuzz", fuzz)),
        _of(
            Command(
                "round-trips",
                "tables by a schema: Python, command line and files give the same bits",
                (*_ROUND_TRIPS, "1000"),
                (*_ROUND_TRIPS, "30"),
                commands.round_trips_words,
                weight=2.0,
            ),
            "Tables",
        ),
        _own("load", "Longest and widest runs", load.TITLE, options_of("load", load)),
        _own("mutants", "Planted bugs", mutants.TITLE, options_of("mutants", mutants)),
        _of(
            _tests(
                "tests",
                "tests of the evidence: what measures, presents and keeps it",
                (*_OWN, "tests/evidence", *_OWN_REST),
                (*_OWN, *_OWN_QUICK),
                3.0,
            ),
            "Tests of this evidence",
        ),
    )
)
ITEMS = {name: part.recipe for name, part in PARTS.items()}
_HEAD = """# Assurance

This page has the figures of the last run of all tests and attacks that look for privacy leaks.
`make assurance` repeats it and writes the page. Repeat one part by the name in the last column:

    python -m evidence assurance/randomness

A run cannot prove privacy. It shows what was tried, and that bugs planted on purpose are noticed.
What the parts mean is in [assurance-cases.md](assurance-cases.md), [audit.md](audit.md),
[checkpoints.md](checkpoints.md), [ledger.md](ledger.md) and [threat-model.md](threat-model.md)."""


def page(settings: Settings, folder: Path) -> str:
    """Return the page from the results of all parts; what is missing is said."""
    rows = []
    for name, part in PARTS.items():
        item = part.recipe.presented(settings, folder)
        words = "not run" if item is None else "; ".join(map(str, item.parts))
        words = words.replace("FAILED.; ", "**FAILED**: ")
        rows.append([part.section, part.about, words, f"`{name}`"])
    table = markdown_table(Table(["area", "what", "figures", "part"], grouped(rows)))
    return "\n\n".join([_HEAD, *_summary(settings, folder), table]) + "\n"


def _summary(settings: Settings, folder: Path) -> Iterator[str]:
    """Say when and on what; parts made at other times or elsewhere are not hidden."""
    found = {
        name: [kept(cell, folder) for cell in recipe.cells(settings)]
        for name, recipe in ITEMS.items()
    }
    contents = [content for ones in found.values() for content in ones if content]
    if not contents:
        return
    # A part with a cell that was not run is not run yet.
    run = [ones for ones in found.values() if all(ones)]
    passed = sum(not any(failed(one["result"]) for one in ones if one) for ones in run)
    dates = sorted({content["date"] for content in contents})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    machines = sorted({_machine(content["measured_on"]) for content in contents})
    versions = "; ".join(
        f"{name} {' and '.join(sorted({_version(content, name) for content in contents}))}"
        for name in _PACKAGES
    )
    missing = f", {len(PARTS) - len(run)} not run yet" if len(run) < len(PARTS) else ""
    minutes = sum(content["seconds"] for content in contents) / 60
    yield (
        f"**{passed} of {len(PARTS)} parts passed{missing}.** They took {minutes:.0f} minutes of "
        f"work, two at a time ({when}).\n\nMeasured on {' and '.join(machines)}, with {versions}."
    )


_PACKAGES = ("dplasso", "numba", "numpy", "scipy", "scikit-learn", "dp-accounting")


def _machine(about: Mapping[str, Any]) -> str:
    return f"{about['processor']} ({about['cores']} cores, {about['memory_gib']} GiB)"


def _version(content: Mapping[str, Any], name: str) -> str:
    return str(content["measured_on"]["versions"][name])


def publish(
    _items: Sequence[Item], settings: Settings, folder: Path
) -> Mapping[str, Mapping[str, Path]]:
    """Write the page: that of the documentation for published results, else beside them."""
    place = ROOT / "docs" if folder == published("assurance") else folder
    files = write_files({"md": page(settings, folder).encode()}, place, "assurance")
    return {"page": files}
