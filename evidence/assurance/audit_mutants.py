"""Broken implementations that the audits have to refute, and the sound one that they must not.

They differ from the planted bugs of `assurance.mutant_list`: here the broken thing is audited as a
user would audit it, and it is *caught* if an audit reports a violation. Each is a function of
`tests/audit/mutants.py`; the same audits of the unbroken implementation must report none.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.audit import mutants as broken

from dplasso.audit import (
    Finding,
    Target,
    audit_canary,
    audit_canary_step,
    audit_exact,
    audit_repeats,
    neighbourhoods,
)
from dplasso.audit.targets import AuditSettings, solver_target

# Of each sampling audit here; the exact ones have no false alarms.
ALARM = 1e-6
_TESTS = "tests/audit/"


@dataclass(frozen=True)
class AuditMutant:
    """A broken implementation and the audit that refutes it.

    Attributes
    ----------
    name, planted : str
        In a few words; what it does.
    target : callable
        Makes it from `AuditSettings`.
    settings : AuditSettings
        Small problems on which it shows.
    audit : {"exact", "canary", "step", "repeats"}
        Which audit.
    test : str
        The test that runs the same audit.
    fast : bool
        Belongs to the fast selection.
    """

    name: str
    planted: str
    target: Callable[[AuditSettings], Target]
    settings: AuditSettings
    audit: str
    test: str
    fast: bool = False


def _exact(target: Target) -> Sequence[Finding]:
    return [
        finding
        for around in neighbourhoods(target.claim)
        for finding in audit_exact(target, around)
    ]


AUDITS: dict[str, Callable[[Target], Sequence[Finding]]] = {
    "exact": _exact,
    "canary": lambda target: [audit_canary(target, 1000, ALARM)[0]],
    "step": lambda target: [audit_canary_step(target, 5000, ALARM)],
    "repeats": lambda target: [audit_repeats(target, 400, ALARM)],
}
_EXACT = f"{_TESTS}test_exact.py::TestMutants::"
_SAMPLED = f"{_TESTS}test_black_box.py::TestMutants::"


def _with(**changes: Any) -> AuditSettings:
    return replace(AuditSettings(), **changes)


AUDIT_MUTANTS = (
    AuditMutant(
        "audited: factor 2 of the sensitivity dropped",
        "a step costs 2 c B and pays for c B",
        broken.factor_two_dropped,
        _with(n_iter=3),
        "exact",
        f"{_EXACT}test_a_dropped_factor_of_two_is_caught",
        fast=True,
    ),
    AuditMutant(
        "audited: factor 2 dropped, seen from outside",
        "the same, told from releases alone",
        broken.factor_two_dropped,
        _with(epsilon=3.0, n_iter=2),
        "step",
        f"{_SAMPLED}test_a_dropped_factor_of_two_is_caught",
    ),
    AuditMutant(
        "audited: scaled by the number of records",
        "a scale for the mean gradient, used on the sum",
        broken.scaled_by_records,
        _with(n_iter=3),
        "exact",
        f"{_EXACT}test_a_scale_by_the_number_of_records_is_caught",
    ),
    AuditMutant(
        "audited: replace-one accounted as add-remove",
        "calibrated for half the sensitivity that is claimed",
        broken.replacement_as_addition,
        _with(n_iter=2),
        "exact",
        f"{_EXACT}test_replacement_accounted_as_addition_is_caught",
    ),
    AuditMutant(
        "audited: steps not composed",
        "every step spends what one alone could",
        broken.composition_forgotten,
        _with(n_iter=3),
        "exact",
        f"{_EXACT}test_forgotten_composition_is_caught",
    ),
    AuditMutant(
        "audited: Laplace accounted as exponential",
        "noisy maximum with Laplace noise, paid for as the exponential mechanism",
        broken.laplace_as_exponential,
        _with(n_iter=2),
        "exact",
        f"{_EXACT}test_laplace_noise_accounted_as_exponential_is_caught",
    ),
    AuditMutant(
        "audited: the true sign",
        "the published step: a coordinate with noise, its sign without",
        broken.true_sign,
        _with(epsilon=0.1, n_iter=2),
        "exact",
        f"{_EXACT}test_the_true_sign_is_caught",
        fast=True,
    ),
    AuditMutant(
        "audited: the true sign, seen from outside",
        "the same, told from releases alone",
        broken.true_sign,
        _with(epsilon=0.1),
        "canary",
        f"{_TESTS}test_black_box.py::TestTheTrueSign::test_whole_fits",
    ),
    AuditMutant(
        "audited: noise reused across fits",
        "the same key in every fit",
        broken.noise_reused,
        _with(n_iter=12),
        "repeats",
        f"{_SAMPLED}test_reused_noise_is_caught",
    ),
    AuditMutant(
        "audited: 8-bit seed",
        "256 streams of noise in all",
        broken.byte_as_seed,
        _with(n_iter=12),
        "repeats",
        f"{_SAMPLED}test_an_8_bit_seed_is_caught",
    ),
)


def run_audit(mutant: AuditMutant) -> dict[str, Any]:
    """Audit a broken implementation; the entry for the report of `assurance.mutants`."""
    began = time.perf_counter()
    try:
        findings = AUDITS[mutant.audit](mutant.target(mutant.settings))
        violated = [finding for finding in findings if finding.violated]
        verdict = "caught" if violated else "missed"
        words = "; ".join(_words(finding) for finding in violated[:1])
    except Exception as error:
        verdict, words = "broken", f"{type(error).__name__}: {error}"
    return {
        "name": mutant.name,
        "area": "audit",
        "planted": mutant.planted,
        "test": mutant.test,
        "verdict": verdict,
        "seconds": round(time.perf_counter() - began, 2),
        "words": words,
    }


def _words(finding: Finding) -> str:
    if finding.about == "randomness" or math.isnan(finding.audited):
        return f"{finding.name}: {finding.detail}"
    return f"{finding.name}: {finding.audited:.4g} where {finding.claimed:.4g} is claimed"


def run_audit_controls(mutants: Iterable[AuditMutant]) -> tuple[str, str]:
    """Audit the sound implementation in the same ways; "missed" is what should come out."""
    for audit, settings in {(mutant.audit, mutant.settings) for mutant in mutants}:
        for finding in AUDITS[audit](solver_target(settings)):
            if finding.violated:
                return "caught", f"{audit}: {_words(finding)}"
    return "missed", ""
