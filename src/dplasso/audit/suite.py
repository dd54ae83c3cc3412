"""All audits together: which are run on what, and how they share the false-alarm rate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dplasso.audit.black_box import Roc, audit_canary, audit_canary_step, audit_repeats
from dplasso.audit.claims import Finding, Target
from dplasso.audit.exact import audit_exact
from dplasso.audit.one_run import audit_one_run
from dplasso.audit.problems import neighbourhoods
from dplasso.audit.report import Report

METHODS = ("exact", "canary", "one-run")

# Few enough for every transcript to be enumerated, enough for a record's full contribution.
EXACT_STEPS = 3
# Steps per canary of the one-run audit: nearly all of their features are drawn at least once.
STEPS_PER_CANARY = 4
# Fits of two steps are cheap, and only those with one history count: this many times the runs.
STEP_RUNS = 2
# Fits whose releases are compared with each other (400 show any 8-bit seed), and their steps.
FEWEST_REPEATS, MOST_REPEATS, REPEAT_STEPS = 400, 2000, 12
# The public estimator's checks take longer than a small fit: it gets a part of the runs.
PUBLIC_PART, FEWEST_PUBLIC = 20, 200
FEWEST_RUNS, FEWEST_CANARIES = 100, 10
# Sampling audits run by each method; the false-alarm rate is divided by their number.
_SAMPLING = {"exact": 0, "canary": 4, "one-run": 1}

Progress = Callable[[str, int, int], None]


# `build(n_iter, public=False)` makes a target of so many steps; the total claim stays what it is.
# `public`: through the interface that users call, rather than the fastest way to the release.
Builder = Callable[..., Target]


@dataclass(frozen=True)
class Plan:
    """How much is audited.

    `n_iter`: steps of the whole fits of the canary audit.
    `runs`: fits on each of the canary's two data sets.
    `canaries`: of the one-run audit.
    `false_alarm`: probability, over all audits together, that a true claim is called violated.
    """

    methods: tuple[str, ...] = METHODS
    n_iter: int = 10
    runs: int = 10_000
    canaries: int = 1000
    false_alarm: float = 5e-4

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.methods) - set(METHODS)):
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {unknown[0]!r}")
        if self.runs < FEWEST_RUNS:
            raise ValueError(f"runs must be at least {FEWEST_RUNS}, got {self.runs}")
        if self.canaries < FEWEST_CANARIES:
            raise ValueError(f"canaries must be at least {FEWEST_CANARIES}, got {self.canaries}")
        if not 0 < self.false_alarm < 1:
            raise ValueError(f"false_alarm must be in (0, 1), got {self.false_alarm!r}")


@dataclass(frozen=True)
class Outcome:
    """The results of a plan: the report, and the canary audit of whole fits if it was made."""

    report: Report
    roc: Roc | None
    attack: Finding | None


def run_audits(build: Builder, plan: Plan, progress: Progress | None = None) -> Outcome:
    """Run all audits of a plan; the progress is told what is done, how much, and of how much."""
    sampling = sum(_SAMPLING[method] for method in plan.methods)
    false_alarm = plan.false_alarm / max(1, sampling)
    findings: list[Finding] = []
    roc = attack = one_run = None
    if "one-run" in plan.methods:
        # Made before any audit: its many steps ask the most of delta.
        one_run = build(STEPS_PER_CANARY * plan.canaries, public=True)
    if "exact" in plan.methods:
        findings += _exact(build, progress)
    if "canary" in plan.methods:
        attack, roc = audit_canary(
            build(plan.n_iter),
            plan.runs,
            false_alarm,
            progress=_named(progress, "canary: whole fits"),
        )
        findings += [attack, *_other_sampling(build, plan, false_alarm, progress)]
    if one_run is not None:
        findings.append(audit_one_run(one_run, plan.canaries, false_alarm))
    return Outcome(Report(build(plan.n_iter).claim, tuple(findings)), roc, attack)


def _other_sampling(
    build: Builder, plan: Plan, false_alarm: float, progress: Progress | None
) -> Sequence[Finding]:
    """Attack the public estimator, a single step, and the randomness."""
    name = "canary: public estimator"
    public, _ = audit_canary(
        build(plan.n_iter, public=True),
        max(FEWEST_PUBLIC, plan.runs // PUBLIC_PART),
        false_alarm,
        name=name,
        progress=_named(progress, name),
    )
    name = "canary: one step"
    step = audit_canary_step(build(2), STEP_RUNS * plan.runs, false_alarm, _named(progress, name))
    fits = min(MOST_REPEATS, max(FEWEST_REPEATS, plan.runs))
    name = "repeated releases"
    repeats = audit_repeats(build(REPEAT_STEPS), fits, false_alarm, _named(progress, name))
    return public, step, repeats


def _exact(build: Builder, progress: Progress | None) -> Sequence[Finding]:
    """Enumerate around every base."""
    target = build(EXACT_STEPS)
    findings: list[Finding] = []
    for around in neighbourhoods(target.claim):
        findings += audit_exact(target, around, _named(progress, f"exact ({around.name})"))
    return findings


def _named(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(name, done, total)
