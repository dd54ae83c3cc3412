"""Fits that survive being killed, and resuming them (docs/checkpoints.md)."""

from dplasso.checkpoint.session import Checkpoint as Checkpoint
from dplasso.checkpoint.session import fit_with_checkpoints as fit_with_checkpoints
from dplasso.checkpoint.session import read_checkpoint as read_checkpoint
from dplasso.checkpoint.session import resume_fit as resume_fit
