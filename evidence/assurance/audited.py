"""Broken implementations that the audits have to refute, and the sound one that they must not.

They differ from the bugs planted in the source: here the broken thing is audited as a user would
audit it, and it is *caught* if an audit reports a violation. Each is a function of
`evidence.assurance.broken`; the same audits of the unbroken implementation must report none.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

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
from evidence.assurance import broken

# Of each sampling audit here; the exact ones have no false alarms.
ALARM = 1e-6
# An entry of planted.toml.
Entry = dict[str, Any]


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


def run_audit(entry: Entry, make: Callable[[AuditSettings], Target] | None = None) -> Entry:
    """Audit a broken implementation, or the one that `make` makes; the entry of the report."""
    began = time.perf_counter()
    try:
        make = make or getattr(broken, entry["target"])
        findings = AUDITS[entry["audit"]](make(replace(AuditSettings(), **entry["settings"])))
        violated = [finding for finding in findings if finding.violated]
        verdict = "caught" if violated else "missed"
        words = "; ".join(_words(finding) for finding in violated[:1])
    except Exception as error:
        verdict, words = "broken", f"{type(error).__name__}: {error}"
    told = {key: entry[key] for key in ("name", "planted", "test")}
    seconds = round(time.perf_counter() - began, 2)
    return told | {"area": "audit", "verdict": verdict, "seconds": seconds, "words": words}


def _words(finding: Finding) -> str:
    if finding.about == "randomness" or math.isnan(finding.audited):
        return f"{finding.name}: {finding.detail}"
    return f"{finding.name}: {finding.audited:.4g} where {finding.claimed:.4g} is claimed"


def run_audit_controls(entries: Iterable[Entry]) -> dict[str, Any]:
    """Audit the sound implementation in the same ways; "missed" is what should come out."""
    sound = {(entry["audit"], str(entry["settings"])): entry for entry in entries}
    found = [run_audit(entry, solver_target) for entry in sound.values()]
    return next((one for one in found if one["verdict"] != "missed"), found[0])
