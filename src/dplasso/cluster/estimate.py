"""What a fit on partitions is going to take, before it is charged: from sizes alone.

The parts were measured by ``python -m evidence.cluster.parts``; docs/cluster.md has the formula.
"""

import math
from dataclasses import dataclass

from dplasso.runtime.progress import duration

# Answers that the driver fetches at most; of more workers they are added up in a tree before.
_FAN_IN = 4
# Of a worker: its process, and what it holds of a row and of a column besides the store.
_PROCESS, _ROW, _COLUMN = 150e6, 48.0, 32.0
# Of the driver, for a row: its label, twice while they are put together.
_LABELS = 17.0
# Bytes of an entry in a store, by rows and by columns.
_ENTRY = 16.0
# Of an entry in the tiles that gradients are computed from.
_TILED = 8.0
# Seconds of one core for an entry, a row and a column of a step.
_ENTRY_SECONDS, _ROW_SECONDS, _COLUMN_SECONDS = 7e-9, 1e-8, 1e-8
# A call and its answer; of the driver's time for each worker; for a column of the driver's sums,
# noise and weights.
_CALL, _CALLS, _DRIVER_COLUMN = 1e-3, 2e-4, 6e-8


@dataclass(frozen=True)
class Estimate:
    """Time and memory of a fit of `steps` gradients or rounds over all rows.

    `places`: workers that have cores at a time; the others take turns. 0 for all.
    `bandwidth`: bytes a second between two machines.
    """

    rows: float
    columns: float
    entries: float
    workers: int
    steps: int
    threads: int = 1
    outputs: int = 1
    places: int = 0
    bandwidth: float = 1.25e9

    @property
    def worker_bytes(self) -> float:
        """Memory that a worker has for itself, without the store."""
        columns = self.columns * self.outputs
        return _PROCESS + _ROW * self.rows / self.workers + _COLUMN * columns

    @property
    def worker_seconds(self) -> float:
        """Seconds of a step over all rows of a worker."""
        rows = _ENTRY_SECONDS * self.entries * self.outputs + _ROW_SECONDS * self.rows
        columns = _COLUMN_SECONDS * self.columns * self.outputs
        return (rows / self.workers + columns) / self.threads

    @property
    def store_bytes(self) -> float:
        """What a worker reads at every step: in memory as far as there is room, else from disk."""
        return _ENTRY * self.entries / self.workers

    @property
    def disk_bytes(self) -> float:
        """Room on a worker's disk that a fit by gradients needs while it lasts, for its tiles."""
        return _TILED * self.entries / self.workers

    @property
    def answer_bytes(self) -> float:
        """Memory of one worker's answer, and of the weights that each is sent."""
        return 8.0 * self.columns * self.outputs

    @property
    def step_seconds(self) -> float:
        """Seconds of a gradient: the slowest worker, calls, answers, the driver's own work."""
        columns, workers = self.columns * self.outputs, self.workers
        levels = math.ceil(math.log(workers, _FAN_IN)) - 1 if workers > _FAN_IN else 0
        fetched = (_FAN_IN - 1) * max(0, levels) + min(workers, _FAN_IN)
        own = self.worker_seconds * math.ceil(workers / (self.places or workers))
        # Weights go out once for each machine, which pass them on.
        sent = (fetched + 1) * self.answer_bytes / self.bandwidth if workers > 1 else 0.0
        return own + _CALL + _CALLS * workers + sent + _DRIVER_COLUMN * columns

    @property
    def seconds(self) -> float:
        """Seconds of all steps, and of reading every row once before the first."""
        return (self.steps + 2.0) * self.step_seconds

    @property
    def driver_bytes(self) -> float:
        """Memory that the driver of a command needs: labels of all rows, answers, column sums."""
        held = (min(self.workers, _FAN_IN) + 5.0) * self.answer_bytes
        return _PROCESS + _LABELS * self.rows + held

    def to_dict(self) -> dict[str, float]:
        """Return it as JSON holds it."""
        names = ["seconds", "step_seconds", "worker_bytes", "store_bytes", "disk_bytes"]
        names.append("driver_bytes")
        return {"steps": self.steps, **{name: getattr(self, name) for name in names}}

    def text(self) -> str:
        """Word it for one who decides whether to begin."""
        return (
            f"about {duration(self.seconds)} for at most {self.steps} passes over the rows, "
            f"{duration(self.step_seconds)} each, with {cores_in_words(self.threads)} a worker; "
            f"a worker needs {_size(self.worker_bytes)} of memory, and {_size(self.store_bytes)} "
            "more for its store to stay in memory; a fit by gradients takes "
            f"{_size(self.disk_bytes)} of a worker's disk while it lasts; the driver needs about "
            f"{_size(self.driver_bytes)}"
        )


def cores_in_words(count: int) -> str:
    """Word how many cores a worker has."""
    return f"{count} {'core' if count == 1 else 'cores'}"


def _size(amount: float) -> str:
    for size, name in ((1e12, "TB"), (1e9, "GB")):
        if amount >= size:
            return f"{amount / size:.2g} {name}"
    return f"{amount / 1e6:.0f} MB"
