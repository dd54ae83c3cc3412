"""What the releases of a fit are drawn with."""

from dataclasses import dataclass, replace
from typing import Any

from dplasso.frank_wolfe.problem import Problem
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.privacy.mechanisms import Mechanism
from dplasso.privacy.randomness import RandomStream
from dplasso.privacy.release import drawing_from
from dplasso.runtime.threads import ONE_THREAD, Threads
from dplasso.selection.registry import make_selector


@dataclass(frozen=True)
class Drawing:
    """The random stream and the threads of a fit, and what an interrupted one has released."""

    stream: RandomStream
    threads: Threads = ONE_THREAD
    prefix: Any = None


def vertex_selector(
    kind: str, mechanism: Mechanism, problem: Problem | RoundSteps, spread: float = 2.0
) -> Any:
    """Return an empty selection structure for this mechanism and problem.

    `spread`: as of `SelectionRule`.
    """
    rule = replace(mechanism.rule(problem.unit), spread=spread)
    numbering = problem.numbering
    selector = make_selector(kind, problem.n_coordinates, rule, numbering)
    return drawing_from(selector, mechanism.sensitivity * problem.unit, numbering)
