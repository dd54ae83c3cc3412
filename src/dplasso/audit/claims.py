"""Claims to audit, the data of audits, their findings, and the statistics that lead to these."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln
from scipy.stats import beta

from dplasso.errors import ParameterError
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.privacy.accounting import bracket
from dplasso.privacy.budget import Budget
from dplasso.privacy.exponential_mechanism import EXPONENT_SLACK
from dplasso.privacy.parameters import RELATIONS

# Empty records beside a canary: they expose a mechanism that is scaled by the number of records.
COMPANY = 10
# Bisection for epsilon stops at this relative width, at its safe (smaller) end.
_WIDTH = 1e-9
LARGEST_EPSILON = 700.0


class Data(NamedTuple):
    """Records that a fit gets: entries of shape (N, D), and labels, 0 or 1."""

    X: csr_array
    y: NDArray[np.int64]


Fit = Callable[[Data], Transcript]


@dataclass(frozen=True)
class Claim:
    """The promise that an audit tries to refute.

    `eps0`: bounded-range parameter of one step; 0 with Gaussian noise.
    """

    epsilon: float
    delta: float
    neighbors: str
    n_iter: int
    feature_bound: float
    eps0: float


@dataclass(frozen=True)
class Target:
    """An implementation under audit; ``fit(data)`` trains once, with fresh randomness."""

    claim: Claim
    fit: Fit


@dataclass(frozen=True)
class Finding:
    """The result of one audit.

    `audited`: lower bound on the true epsilon; NaN where the audit refutes independence alone.
    `false_alarm`: probability that a true claim is called violated.
    `about`: "step", "fit" or "randomness".
    """

    name: str
    claimed: float
    audited: float
    delta: float
    false_alarm: float
    violated: bool
    about: str
    detail: str
    figures: dict[str, Any]


def finding(
    claim: Claim,
    name: str,
    about: str,
    audited: float,
    *,
    violated: bool,
    detail: str,
    figures: dict[str, Any],
    false_alarm: float = 0.0,
) -> Finding:
    """Return a finding about a claim: about a step that is eps0 alone, else epsilon and delta."""
    claimed, delta = (claim.eps0, 0.0) if about == "step" else (claim.epsilon, claim.delta)
    return Finding(name, claimed, audited, delta, false_alarm, violated, about, detail, figures)


def bound_in_words(name: str, audited: float, claimed: float) -> str:
    """Return the end of a sentence: an attack that found nothing proves nothing."""
    if audited == 0:
        return f"the attack found nothing against the claimed {name} of {claimed:.4g}"
    return f"{name} is at least {audited:.4g}; {claimed:.4g} is claimed"


def claim_of(budget: Budget, feature_bound: float = 1.0) -> Claim:
    """Return the claim of a fit's budget; ValueError without privacy: nothing is claimed then.

    That of ``mechanism="paper"``, which has no guarantee, is what its authors' accounting says:
    epsilon in all and ``epsilon / sqrt(8 T log(1/delta))`` a step (arXiv 2310.19978).
    """
    if math.isinf(budget.epsilon):
        raise ParameterError("`epsilon=inf` claims nothing: there is nothing to audit.")
    if budget.name == "paper":
        root = math.sqrt(8.0 * budget.n_iter * -math.log(budget.delta))
        eps0 = budget.epsilon / root
    else:
        eps0 = budget.eps0 * (1.0 - EXPONENT_SLACK)
    stated = ("epsilon", "delta", "neighbors", "n_iter")
    parameters = {name: getattr(budget, name) for name in stated}
    return Claim(**parameters, feature_bound=feature_bound, eps0=eps0)


def make_data(rows: NDArray[np.float64], labels: NDArray[np.int64]) -> Data:
    """Return a data set of dense rows, whose zeros are not stored."""
    return Data(csr_array(np.asarray(rows, dtype=np.float64)), np.asarray(labels, dtype=np.int64))


def canary_pair(claim: Claim) -> tuple[Data, Data]:
    """Return two neighbours, with and without a canary: a record that owns its features.

    Under replace-one a record of the other label replaces it that differs in the sign of column 1:
    a step along column 1 drives their contributions to column 0 apart, to all of twice the bound.
    If labels alone are private, the record keeps its features.
    """
    labels = np.arange(COMPANY) % 2
    if claim.neighbors == "add-remove":
        rows = np.zeros((COMPANY, 1))
        canary = np.vstack([rows, [[claim.feature_bound]]])
        return make_data(canary, np.append(labels, 1)), make_data(rows, labels)
    rows = np.zeros((COMPANY, 2))
    opposite = -1 if RELATIONS[claim.neighbors].hides_features else 1
    one, other = ([[claim.feature_bound, side * claim.feature_bound]] for side in (1, opposite))
    return (
        make_data(np.vstack([rows, one]), np.append(labels, 1)),
        make_data(np.vstack([rows, other]), np.append(labels, 0)),
    )


@dataclass(frozen=True)
class Report:
    """All findings about the claim of the fit that was asked about, in the order of the audits."""

    claim: Claim
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        # An empty report would read as a clean one.
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
            "verdict": "violation" if self.violated else "consistent",
            "violated": self.violated,
            "findings": [asdict(finding) for finding in self.findings],
        }

    def text(self) -> str:
        """Return the verdict in words, one paragraph."""
        claim = self.claim
        promise = f"epsilon = {claim.epsilon:g}, delta = {claim.delta:g}, {claim.neighbors}"
        evidence = f"audited epsilon {self.audited_epsilon:.4g}".replace("inf", "infinite")
        if self.audited_epsilon == 0 and any(f.about == "fit" for f in self.findings):
            evidence = "the attacks on whole fits found nothing"
        sure = f"confidence {100 * (1 - self.false_alarm):.6g} %"
        if self.violated:
            refuted = ", ".join(f.name for f in self.findings if f.violated)
            return (
                f"VIOLATION: the claim ({promise}) is refuted; {evidence}, {sure}. "
                f"Refuted by: {refuted}."
            )
        return (
            f"Consistent: nothing refutes the claim ({promise}); {evidence}, {sure}. "
            "An audit bounds epsilon from below: it can refute a claim, never prove one."
        )


def binomial_lower(hits: int, trials: int, alpha: float) -> float:
    """Return the one-sided Clopper-Pearson lower bound of a probability; 0 without hits."""
    if hits == 0:
        return 0.0
    return float(beta.ppf(alpha, hits, trials - hits + 1))


def epsilon_lower_bound(
    hits: tuple[int, int], trials: tuple[int, int], delta: float, alpha: float
) -> float:
    """Return a lower bound on epsilon by how often one event came on two neighbouring data sets.

    The event was chosen without these trials. Half of `alpha` goes to either rate.
    """
    above = binomial_lower(hits[0], trials[0], alpha / 2) - delta
    unlikely = 1.0 - binomial_lower(trials[1] - hits[1], trials[1], alpha / 2)
    if above <= unlikely:
        return 0.0
    return math.inf if unlikely == 0 else math.log(above / unlikely)


def odds_p_value(hits: tuple[int, int], trials: tuple[int, int], log_ratio: float) -> float:
    """Test that the log of an event's odds ratio is at most `log_ratio`; Fisher's p-value."""
    total = sum(hits)
    first = np.arange(max(0, total - trials[1]), min(trials[0], total) + 1)
    logs = _log_choose(trials[0], first) + _log_choose(trials[1], total - first)
    logs = logs + log_ratio * first
    weights = np.exp(logs - logs.max())
    # The sums are rounded each in its own way.
    return float(min(1.0, weights[first >= hits[0]].sum() / weights.sum()))


def _log_choose(n: int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def range_lower_bound(hits: tuple[int, int], trials: tuple[int, int], alpha: float) -> float:
    """Return a lower bound on a step's bounded-range parameter.

    If all log-ratios of two distributions lie within eps0 of each other, so do those of an event
    and of its complement: the event's log-odds differ by at most eps0. The bound, the largest
    difference that `odds_p_value` refutes, exceeds the truth with probability `alpha`.
    """
    return largest_refuted(lambda log_ratio: odds_p_value(hits, trials, log_ratio) < alpha)


def largest_refuted(refuted: Callable[[float], bool]) -> float:
    """Return the end of the refuted values, which start at 0, from below; 0 if there are none."""
    if not refuted(0.0):
        return 0.0
    end, _ = bracket(lambda value: value < LARGEST_EPSILON and refuted(value), 1.0, _WIDTH)
    return end
