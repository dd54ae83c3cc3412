"""Rows whose bins have private edges."""

from typing import Any

from scipy.sparse import csr_array


class EdgedRows(csr_array):
    """Rows whose bins have private edges, with the origin by which a fit counts their cost.

    Copies and selected rows keep it. Other results lose it, and a fit refuses them.
    """

    dplasso_origin: Any = None

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        columns = key[1:] if isinstance(key, tuple) else ()
        # An array cannot be compared with a slice.
        slices = [some for some in columns if some is not Ellipsis]
        every = all(isinstance(some, slice) and some == slice(None) for some in slices)
        return self._like(part) if every else part

    def copy(self) -> Any:
        """Return a copy with the same origin."""
        return self._like(super().copy())

    def _like(self, part: Any) -> Any:
        if isinstance(part, EdgedRows):
            part.dplasso_origin = self.dplasso_origin
        return part
