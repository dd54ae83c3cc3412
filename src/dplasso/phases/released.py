"""What has been released so far in a fit: its only state, and what a model and a file hold."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.energies import scale_exponents_of, shrinking
from dplasso.gradient_descent.magnitudes import LONGEST_ROW, ROW_NORM
from dplasso.gradient_descent.schedule import TABLE_COLUMNS
from dplasso.matrix.scaling import (
    MOST_SCALE_EXPONENT,
    NO_CENTRES,
    NO_SCALE_EXPONENTS,
    SCALES,
    UNLIMITED,
    Mix,
    Scaling,
)
from dplasso.phases.releases import (
    KINDS,
    NO_COLUMNS,
    Centred,
    Drawn,
    Entered,
    Kept,
    Magnitudes,
    Mixed,
    Paired,
    Release,
    RowLength,
    Scaled,
    Started,
)

_NO_ENERGIES = np.zeros(0, dtype=np.float32)
Some = TypeVar("Some", bound=Release)


@dataclass(frozen=True)
class Entry:
    """What came of a phase: its release, None where it had nothing to do, and its share."""

    share: float
    release: Release | None


@dataclass(frozen=True)
class Released:
    """What has been released so far, in order: the only state of a fit."""

    entries: tuple[Entry, ...] = ()

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def spent(self) -> float:
        """The share of the budget that is spent."""
        return math.fsum(entry.share for entry in self.entries)

    def then(self, share: float, release: Release | None) -> "Released":
        """Return what has been released with one more release."""
        return replace(self, entries=(*self.entries, Entry(share, release)))

    def every(self, kind: type[Some]) -> list[Some]:
        """Return the releases of a kind, in order."""
        return [entry.release for entry in self.entries if isinstance(entry.release, kind)]

    def last(self, kind: type[Some]) -> Some | None:
        """Return the last release of a kind, if there is one."""
        releases = self.every(kind)
        return releases[-1] if releases else None

    @property
    def drawn_columns(self) -> NDArray[np.int64] | None:
        """The columns of the vertices, or those that enter; None where that is all of them."""
        drawn, entered = self.last(Drawn), self.last(Paired) or self.last(Entered)
        if entered is not None:
            return entered.columns
        return drawn.columns if drawn is not None and drawn.vertex.size else None

    @property
    def kept_columns(self) -> NDArray[np.int64]:
        """The columns that the last cut left; none for all."""
        cut = self.last(Kept)
        return NO_COLUMNS if cut is None else cut.columns

    def kept(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of these columns, from those of all; none from none."""
        kept = self.kept_columns
        return values[kept] if kept.size and values.size else values

    @property
    def mix(self) -> Mix | None:
        """How gradients of all columns use public rows; None where they do not."""
        mixed = self.last(Mixed)
        if mixed is None or not mixed.n_directions:
            return None
        return Mix(mixed.n_directions, mixed.part)

    @property
    def keeps_lengths(self) -> bool:
        """Whether rows keep their lengths, up to `LONGEST_ROW` times their bound."""
        measured = self.last(Magnitudes)
        return measured is not None and bool(measured.squares.any())

    @property
    def row_length(self) -> float:
        """How long rows are in the columns of the next gradients, as released; 1 from no prior."""
        measured = self.last(RowLength)
        return 1.0 if measured is None else measured.length

    @property
    def length(self) -> float:
        """What rows are divided by; those that are then longer than 1 weigh less."""
        return 1.0 / LONGEST_ROW if self.keeps_lengths else self.row_length

    @property
    def energies(self) -> NDArray[np.float32]:
        """Energies of the columns; none where columns are not scaled."""
        scaled = self.last(Paired) or self.last(Scaled)
        return _NO_ENERGIES if scaled is None else scaled.energies

    @property
    def kept_energies(self) -> NDArray[np.float32]:
        """Energies of these columns; none where they are not scaled."""
        # In a short list, scaled rows would have the directions of their rare entries. With a prior
        # rows have the length of all columns.
        is_list = 0 < self.kept_columns.size <= TABLE_COLUMNS and self.last(Started) is None
        return _NO_ENERGIES if is_list else self.kept(self.energies)

    @property
    def kept_sizes(self) -> NDArray[np.float64]:
        """Root mean squares of these columns' scaled entries, up to a factor; none if unknown."""
        measured, energies = self.last(Magnitudes), self.kept_energies
        if energies.size:
            # Noise may hide energies below the threshold.
            return np.sqrt(np.maximum(energies, 1.0)) * SCALES[scale_exponents_of(energies)]
        if measured is None or not self.keeps_lengths:
            return np.zeros(0)
        sizes: NDArray[np.float64] = np.sqrt(self.kept(measured.squares))
        return sizes * SCALES[self.kept_exponents] if self.kept_exponents.size else sizes

    @property
    def kept_exponents(self) -> NDArray[np.int8]:
        """How often the entries of these columns are halved; none where columns are not scaled."""
        measured = self.last(Magnitudes)
        own = scale_exponents_of(self.kept_energies)
        if measured is None or not measured.exponents.any():
            return own
        units: NDArray[np.int8] = self.kept(measured.exponents)
        return np.minimum(units + own if own.size else units, MOST_SCALE_EXPONENT).astype(np.int8)

    @property
    def kept_centres(self) -> NDArray[np.float64]:
        """What is taken from the entries of these columns; none where none is centred."""
        centred = self.last(Centred)
        if centred is None or not centred.centres.any():
            return NO_CENTRES
        return self.kept(centred.centres)

    def scaling(self, constant: float, norm_bound: float | None, *, from_prior: bool) -> Scaling:
        """Return how rows are scaled to the length 1, or by a bound on their norms.

        With a prior, rows keep their length in all columns, and the prior its margins.
        """
        measured, centres, limits = self.last(Magnitudes), self.kept_centres, NO_CENTRES
        if measured is not None and centres.size:
            # Entries of centred columns are clipped.
            bounds = self.kept(measured.bounds)
            limits = np.where((centres != 0.0) & (bounds > 0.0), bounds, UNLIMITED)
        if measured is not None and self.keeps_lengths:
            squares = measured.squares * SCALES[measured.exponents] ** 2
            norm_bound = ROW_NORM * math.sqrt(float(self.kept(squares).sum())) * LONGEST_ROW
        if norm_bound is not None:
            norm_bound *= shrinking(self.energies if from_prior else self.kept_energies)
        around = scale_exponents_of(self.energies) if from_prior else NO_SCALE_EXPONENTS
        how = self.kept_exponents, around, self.length, centres, limits
        return Scaling(self.kept_columns, constant, norm_bound, *how)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file holds: the shares, and ``<place>-<kind>-<field>`` of each release."""
        arrays: dict[str, NDArray[Any]] = {
            "shares": np.array([entry.share for entry in self.entries], dtype="<f8")
        }
        for place, entry in enumerate(self.entries):
            if entry.release is not None:
                for name, array in entry.release.arrays().items():
                    arrays[f"{place:02}-{entry.release.kind}-{name}"] = array
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "Released":
        """Return what a file holds; ValueError if it is not that of a fit."""
        shares = arrays["shares"]
        is_list = shares.dtype.str == "<f8" and shares.ndim == 1
        if not is_list or not np.all((shares >= 0) & (shares <= 1)):
            raise ValueError("the shares of its releases are not those of a budget")
        kinds, held = dict[int, str](), defaultdict[int, dict[str, NDArray[Any]]](dict)
        for member in arrays.keys() - {"shares"}:
            place, kind, name = [*member.split("-", 2), "", ""][:3]
            if kind not in KINDS or not place.isdecimal() or int(place) >= shares.size:
                raise ValueError(f"it holds {member}, which is not one of {shares.size} releases")
            if kinds.setdefault(int(place), kind) != kind:
                raise ValueError("two of its releases have one place")
            held[int(place)][name] = arrays[member]
        entries = []
        for number, share in enumerate(shares.tolist()):
            released = number in kinds
            release = KINDS[kinds[number]].from_arrays(held[number]) if released else None
            entries.append(Entry(share, release))
        return cls(tuple(entries))

    @property
    def digest(self) -> str:
        """The digest, 64 hexadecimal digits, by which a ledger knows what it has paid for."""
        return sha256(b"".join(array.tobytes() for array in self.arrays().values())).hexdigest()
