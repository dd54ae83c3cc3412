"""Panels of test AUC, one for each data set, for the pictures of the pages."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evidence.report import plain
from evidence.utility.fits import EPSILONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def panels(
    figure: "Figure", labels: Sequence[str], titles: Mapping[str, str], columns: int | None = None
) -> list[tuple[str, Any]]:
    """Return axes for each data set, all in one row unless so many columns are asked for."""
    columns = columns or len(labels)
    grid = figure.subplots(-(-len(labels) // columns), columns, squeeze=False)
    for axes in grid:
        axes[0].set_ylabel("test AUC")
    for axis, label in zip(grid.flat, labels, strict=False):
        plain(axis, titles.get(label, label), grid=True)
        axis.set_xscale("log")
    for axis in grid.flat[len(labels) :]:
        axis.remove()
    return list(zip(labels, grid.flat, strict=False))


def over_epsilon(axis: Any) -> None:
    """Label the horizontal axis with the budgets."""
    axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS], minor=False)
    axis.set_xticks([], minor=True)
    axis.set_xlabel("epsilon")


def set_message(figure: "Figure", message: str, columns: int | None = None) -> None:
    """Write the message of a picture above its panels."""
    text = textwrap.fill(message, 90 if columns is None else 46)
    figure.suptitle(text, x=0.01, ha="left", fontsize=11, weight="bold")
