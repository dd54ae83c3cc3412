"""The verdict of a set of audits, in words and as JSON."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from dplasso.audit.claims import Claim, Finding

VIOLATION = "violation"
CONSISTENT = "consistent"


@dataclass(frozen=True)
class Report:
    """All findings about the claim of the fit that was asked about, in the order of the audits."""

    claim: Claim
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        # Without audits it would read as a clean one.
        if not self.findings:
            raise ValueError("no audit was run, so there is nothing to report")

    @property
    def false_alarm(self) -> float:
        """Return a bound on the probability that any true claim was called violated: a sum."""
        return math.fsum(finding.false_alarm for finding in self.findings)

    @property
    def violated(self) -> bool:
        """Return whether any audit refuted its claim."""
        return any(finding.violated for finding in self.findings)

    @property
    def verdict(self) -> str:
        """Return "violation" or "consistent"; the latter is no proof of privacy."""
        return VIOLATION if self.violated else CONSISTENT

    @property
    def audited_epsilon(self) -> float:
        """Return the largest lower bound on a whole fit's epsilon; 0 without an audit of fits."""
        return max((f.audited for f in self.findings if f.about == "fit"), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values; infinities and NaN are left as floats."""
        return {
            "claim": asdict(self.claim),
            "audited_epsilon": self.audited_epsilon,
            "confidence": 1.0 - self.false_alarm,
            "false_alarm": self.false_alarm,
            "verdict": self.verdict,
            "violated": self.violated,
            "findings": [asdict(finding) for finding in self.findings],
        }

    def text(self) -> str:
        """Return the verdict in words, one paragraph."""
        claim = self.claim
        promise = f"epsilon = {claim.epsilon:g}, delta = {claim.delta:g}, {claim.neighbors}"
        found = f"audited epsilon {_number(self.audited_epsilon)}"
        if self.audited_epsilon == 0 and any(f.about == "fit" for f in self.findings):
            found = "the attacks on whole fits found nothing"
        sure = f"confidence {100 * (1 - self.false_alarm):.6g} %"
        if self.violated:
            refuted = ", ".join(f.name for f in self.findings if f.violated)
            return (
                f"VIOLATION: the claim ({promise}) is refuted; {found}, {sure}. "
                f"Refuted by: {refuted}."
            )
        return (
            f"Consistent: nothing refutes the claim ({promise}); {found}, {sure}. "
            "An audit bounds epsilon from below: it can refute a claim, never prove one."
        )


def _number(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.4g}"
