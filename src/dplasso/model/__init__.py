"""The model that a fit releases, and its file."""

from dplasso.model.file import Model, read_model, write_model

__all__ = ["Model", "read_model", "write_model"]
