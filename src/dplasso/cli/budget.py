"""``dplasso budget``: what a privacy budget buys, before any data is touched."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from dplasso.cli import options
from dplasso.cli.output import out, print_json

if TYPE_CHECKING:
    from dplasso.privacy.statement import PrivacyStatement

EXAMPLES = options.examples(
    "dplasso budget --epsilon 1",
    "dplasso budget --epsilon 0.5 --n-iter 300 --features 1000000",
    "dplasso budget --epsilon 1 --neighbors replace-one --json",
)

ITERATIONS_SHOWN = (10, 30, 100, 300, 1000, 4000)


def budget(
    epsilon: options.Epsilon,
    delta: options.Delta = 1e-6,
    neighbors: options.Neighbors = "add-remove",
    feature_bound: options.FeatureBound = 1.0,
    n_iter: options.Iterations = 100,
    features: Annotated[
        int | None,
        typer.Option(
            "--features",
            metavar="D",
            min=1,
            show_default=False,
            help="Also say how strong a column must be to be found among D.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Say what a fit would cost and how much noise it would meet, without any data."""
    from dplasso import privacy_cost

    def cost(iterations: int) -> "PrivacyStatement":
        return privacy_cost(epsilon, delta, iterations, neighbors, feature_bound)

    asked = cost(n_iter)
    counts = sorted({*ITERATIONS_SHOWN, n_iter})
    rows = [_row(asked if count == n_iter else cost(count), features) for count in counts]
    if as_json:
        mine = next(row for row in rows if row["n_iter"] == n_iter)
        print_json({"privacy": asked.to_dict(), "noise_scale": mine["noise_scale"], "table": rows})
        return
    out.print("A fit with these settings would be:\n", markup=False, highlight=False)
    out.print(asked.text(), markup=False, highlight=False)
    out.print()
    out.print(_table(rows, n_iter, features))
    out.print(
        "A column's gradient is a sum over records, each giving at most "
        f"{feature_bound:g}. At noise scale s, a column whose gradient is larger by s is about e "
        "times as likely to be chosen.",
        markup=False,
        highlight=False,
    )


def noise_scale(statement: "PrivacyStatement") -> float:
    """Give the scale of the selection's noise on one coordinate of the summed gradient.

    Parameters
    ----------
    statement : PrivacyStatement
        What a fit would spend.

    Returns
    -------
    float
        1/c of the exponential mechanism exp(c alpha) (also the scale of its Gumbel noise), in units
        of the gradient; 0 without privacy.
    """
    if math.isinf(statement.eps0):
        return 0.0
    return 2.0 * statement.sensitivity / statement.eps0


def _row(statement: "PrivacyStatement", features: int | None) -> dict[str, Any]:
    scale = noise_scale(statement)
    row = {"n_iter": statement.steps, "eps0": statement.eps0, "noise_scale": scale}
    if features is not None:
        # The largest of 2D Gumbel noises of scale s is about s ln(2D).
        row["findable_gradient"] = scale * math.log(2 * features)
    return row


def _table(rows: list[dict[str, Any]], n_iter: int, features: int | None) -> Table:
    table = Table()
    table.add_column("iterations", justify="right")
    table.add_column("eps0 per iteration", justify="right")
    table.add_column("noise scale on a gradient", justify="right")
    if features is not None:
        table.add_column(f"gradient that stands out\namong {features:,} columns", justify="right")
    for row in rows:
        cells = [f"{row['n_iter']:,}", f"{row['eps0']:.5g}", f"{row['noise_scale']:,.1f}"]
        if features is not None:
            cells.append(f"{row['findable_gradient']:,.0f}")
        table.add_row(*cells, style="bold" if row["n_iter"] == n_iter else None)
    return table
