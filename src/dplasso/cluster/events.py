"""What happened in a fit on partitions, and how long it took: for the curator, not for release."""

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dplasso.files.atomic import open_private

# The event that a fit begins with.
FIRST = "begin"
# Methods of a worker that are steps of a fit: of columns, and of gradients.
_STEPS = ("move", "sums")


@dataclass
class Metrics:
    """What a fit on partitions has taken so far; bytes are those of arrays, seen by the driver."""

    workers: int = 0
    steps: int = 0
    seconds: float = 0.0
    sent: int = 0
    received: int = 0
    restarts: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return them by name, with the seconds of a step."""
        return {**asdict(self), "seconds_a_step": self.seconds / max(1, self.steps)}


@dataclass(frozen=True)
class Events:
    """Count what fits on partitions do, and write it down; for the curator, not for release.

    Parameters
    ----------
    place : str, default=None
        File that a line of JSON is added to for each event, closed to others; "-" for standard
        error; None for nowhere.
    metrics : Metrics
        The totals so far, with the attributes `workers`, `steps`, `seconds`, `sent` and `received`
        (bytes of arrays) and `restarts`.

    Examples
    --------
    >>> from dplasso.cluster import Events, ThreadEngine
    >>> engine = ThreadEngine(events=Events("fit.events"))
    >>> engine.events.metrics.steps
    0
    """

    place: str | None = None
    metrics: Metrics = field(default_factory=Metrics)

    def tell(self, event: str, **facts: Any) -> None:
        """Write one event; OSError if the first of a fit cannot be written, which ends no other."""
        if self.place is None:
            return
        line = json.dumps({"time": round(time.time(), 3), "event": event, **facts}) + "\n"
        try:
            if self.place == "-":
                sys.stderr.write(line)
                return
            with open_private(Path(self.place), "a") as file:
                file.write(line)
        except OSError:
            # By now the fit may be paid for.
            if event == FIRST:
                raise

    def answered(self, method: str, began: float, sent: tuple[Any, ...], found: list[Any]) -> None:
        """Count a call of all workers."""
        if method not in _STEPS:
            return
        metrics, seconds = self.metrics, time.perf_counter() - began
        there, back = _bytes(sent) * metrics.workers, _bytes(found)
        metrics.steps, metrics.seconds = metrics.steps + 1, metrics.seconds + seconds
        metrics.sent, metrics.received = metrics.sent + there, metrics.received + back
        facts = {"number": metrics.steps, "method": method, "seconds": round(seconds, 6)}
        self.tell("step", **facts, sent=there, received=back)


def _bytes(given: Any) -> int:
    """Return the bytes of arrays, in tuples and lists too."""
    if isinstance(given, tuple | list):
        return sum(map(_bytes, given))
    return int(getattr(given, "nbytes", 0))
