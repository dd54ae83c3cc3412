"""A fit by noisy gradient descent that needs no more steps."""

from dataclasses import dataclass

from dplasso.gradient_descent.release import NoisyWeights


@dataclass(frozen=True)
class CompletedRun:
    """A fit whose checkpoint holds all of it; see `GradientRun`."""

    n_steps: int
    finished: NoisyWeights

    history = work = None

    def begin(self) -> None:
        """Do nothing: the records were counted before."""

    def advance(self, first: int, last: int) -> None:
        """Do nothing: every gradient was taken before."""

    def release(self, done: int | None = None) -> NoisyWeights:  # noqa: ARG002
        """Return what the checkpoint holds."""
        return self.finished
