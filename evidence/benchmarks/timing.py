"""Clocks: runs that take turns, and training loops that are stopped and scaled."""

from evidence.paper.timing import (
    LoopTime,
    StepClock,
    interleave,
    middle,
    seconds,
    time_fit,
    time_steps,
)

__all__ = ["LoopTime", "StepClock", "interleave", "middle", "seconds", "time_fit", "time_steps"]
