"""What leaves a fit: the model and its file."""

from dplasso.model.file import Model, read_model, write_model

__all__ = ["Model", "read_model", "write_model"]
