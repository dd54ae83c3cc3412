"""``dplasso budget``: what a privacy budget buys, before any data is touched."""

import math
from typing import TYPE_CHECKING, Annotated, Any

from dplasso.cli import options
from dplasso.cli.options import MODEL, option
from dplasso.cli.output import print_json, print_promise, print_table, print_text

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
        option(
            "--features",
            "Also say how strong a column must be to be found among D.",
            "D",
            MODEL,
            min=1,
        ),
    ] = None,
    explain: options.Explain = False,
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
    print_text("A fit with these settings would be:\n")
    print_promise(asked, explain=explain)
    print_text()
    _print_table(rows, n_iter, features)
    print_text(
        "A column's gradient is a sum over records, each giving at most "
        f"{feature_bound:g}. At noise scale s, a column whose gradient is larger by s is about e "
        "times as likely to be chosen."
    )


def noise_scale(statement: "PrivacyStatement") -> float:
    """Return the scale of the selection's noise on one coordinate of the summed gradient.

    1/c of the exponential mechanism exp(c alpha), which is the scale of its Gumbel noise too; 0
    without privacy.
    """
    return 0.0 if math.isinf(statement.eps0) else 2.0 * statement.sensitivity / statement.eps0


def _row(statement: "PrivacyStatement", features: int | None) -> dict[str, Any]:
    scale = noise_scale(statement)
    row = {"n_iter": statement.steps, "eps0": statement.eps0, "noise_scale": scale}
    if features is not None:
        # The largest of 2D Gumbel noises of scale s is about s ln(2D).
        row["findable_gradient"] = scale * math.log(2 * features)
    return row


def _print_table(rows: list[dict[str, Any]], n_iter: int, features: int | None) -> None:
    from dplasso.privacy.wording import rounded_up

    headings = [">iterations", ">eps0 per iteration", ">noise scale on a gradient"]
    cells = [
        [f"{row['n_iter']:,}", rounded_up(row["eps0"], 5), f"{row['noise_scale']:,.1f}"]
        for row in rows
    ]
    if features is not None:
        headings.append(f">gradient that stands out\namong {features:,} columns")
        for line, row in zip(cells, rows, strict=True):
            line.append(f"{row['findable_gradient']:,.0f}")
    asked = next(i for i, row in enumerate(rows) if row["n_iter"] == n_iter)
    print_table(headings, cells, strong={asked: "bold"})
