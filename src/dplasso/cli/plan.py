"""``dplasso plan``: one budget divided among all that is done with a data set, before any data."""

from typing import TYPE_CHECKING, Annotated

from dplasso.cli import options
from dplasso.cli.options import PRIVACY, option
from dplasso.cli.output import print_json, print_table, print_text

if TYPE_CHECKING:
    from dplasso.tuning.plan import Part

EXAMPLES = options.examples(
    "dplasso plan --epsilon 2 --rows 30000",
    "dplasso plan --epsilon 2 --rows 30000 --method logistic --tries 3",
    note="Shares are of zCDP, which adds up; the epsilons of the parts sum to more than the whole.",
)
_COMMANDS = {"fit": "fit", "refit": "fit", "search": "tune", "score": "evaluate"}


def plan(
    epsilon: Annotated[
        float, option("--epsilon", "What everything may spend together.", "E", PRIVACY)
    ],
    rows: Annotated[int, option("--rows", "About how many rows there are; public.", "N", min=1)],
    delta: options.Delta = 1e-6,
    neighbors: options.Neighbors = "add-remove",
    method: options.Method = "lasso",
    n_iter: options.Steps = None,
    columns: Annotated[
        int, option("--columns", "About how many columns there are.", "D", min=1)
    ] = 100_000,
    score: Annotated[float, option("--score", "Share of a private score.", "S")] = 0.1,
    encoding: Annotated[
        float, option("--encoding", "Share of a private encoding of the columns.", "S")
    ] = 0.0,
    refit: Annotated[float, option("--refit", "Share of a second fit.", "S")] = 0.0,
    tries: Annotated[
        float, option("--tries", "Search, with so many tries expected, in place of the fit.", "M")
    ] = 0.0,
    as_json: options.AsJson = False,
) -> None:
    """Divide a budget among encoding, fit or search, second fit and score."""
    from dplasso.tuning.plan import plan_budget

    parts = plan_budget(
        epsilon,
        delta,
        method=method,
        n_iter=n_iter,
        neighbors=neighbors,
        score=score,
        encoding=encoding,
        refit=refit,
        tries=tries,
    )
    finds = [_finds(part, method, rows, columns, n_iter) for part in parts]
    if as_json:
        print_json(
            {
                "epsilon": epsilon,
                "delta": delta,
                "neighbors": neighbors,
                "parts": [
                    {
                        "name": part.name,
                        "share": part.share,
                        "epsilon": part.epsilon,
                        "delta": part.delta,
                        "try_epsilon": part.try_epsilon or None,
                        "finds": found,
                    }
                    for part, found in zip(parts, finds, strict=True)
                ],
            }
        )
        return
    print_table(
        ["part", ">share", ">epsilon", "what it finds"],
        [
            [part.name, f"{part.share:.0%}", _down(part.epsilon), found]
            for part, found in zip(parts, finds, strict=True)
        ],
    )
    print_text("\nA ledger takes the plan:")
    init = f"dplasso ledger init L --epsilon {epsilon:g} --delta {delta:g}"
    if neighbors != "add-remove":
        init += f" --neighbors {neighbors}"
    print_text(f"  {init}", wrap=False)
    for part in parts:
        if part.epsilon and part.name in _COMMANDS:
            print_text(f"  {_command(part, method, tries, delta)}", wrap=False)


def _command(part: "Part", method: str, tries: float, delta: float) -> str:
    words = f"dplasso {_COMMANDS[part.name]} "
    words += "model.npz DATA" if part.name == "score" else f"DATA --method {method}"
    if part.name == "search":
        words += f" --grid NAME=V,V --tries {tries:g} --law poisson"
    words += f" --epsilon {_down(part.epsilon)} --delta {delta:g} --ledger L"
    return words if part.name == "score" else f"{words} --model model.npz"


def _finds(part: "Part", method: str, rows: int, columns: int, n_iter: int | None) -> str:
    """Say what a part can tell from so many rows."""
    from dplasso import weakest_association

    if part.mechanism is None:
        return "nothing: the share is too small"
    if part.name in ("score", "encoding"):
        sigma = part.mechanism.sensitivity / part.mechanism.mu
        if part.name == "encoding":
            return f"a count of rows to within {2.0 * sigma:,.0f}"
        # Right and wrong rows, each with this noise, near an accuracy of 0 or 1 at the worst.
        return f"an accuracy over all rows to within {2.0 * sigma / rows:.4f}, and chance"
    found = weakest_association(
        part.try_epsilon or part.epsilon,
        part.delta,
        rows,
        columns,
        method=method,
        n_iter=n_iter,
        neighbors=part.mechanism.neighbors,
    )
    told = "nothing"
    if found.part <= 1.0:
        told = f"columns in {found.rows:,.0f} more rows of one class than of the other"
    if part.name == "search":
        return f"{told}, by each try (epsilon about {_down(part.try_epsilon)})"
    return told


def _down(epsilon: float) -> str:
    from dplasso.ledger.refusal import rounded_down

    return rounded_down(epsilon)
