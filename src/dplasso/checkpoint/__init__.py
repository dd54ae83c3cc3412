"""Fits that survive being killed, and resuming them (docs/checkpoints.md)."""

from dplasso.checkpoint.format import Checkpoint, read_checkpoint
from dplasso.checkpoint.session import (
    DEFAULT_SECONDS,
    check_resumable,
    fit_with_checkpoints,
    mark_finished,
    resume_fit,
)

__all__ = [
    "DEFAULT_SECONDS",
    "Checkpoint",
    "check_resumable",
    "fit_with_checkpoints",
    "mark_finished",
    "read_checkpoint",
    "resume_fit",
]
