"""What leaves a fit: the contract of a release, and the model file."""

from dplasso.model.file import Model, read_model, write_model
from dplasso.model.release import Release

__all__ = ["Model", "Release", "read_model", "write_model"]
