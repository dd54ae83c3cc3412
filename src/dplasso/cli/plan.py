"""``dplasso plan``: one budget divided among all that is done with a data set, before any data."""

from typing import TYPE_CHECKING, Any

from dplasso.cli.ledger_report import down
from dplasso.cli.options import examples
from dplasso.cli.output import print_json, print_table, print_text

if TYPE_CHECKING:
    from dplasso.tuning.plan import Part

EXAMPLES = examples(
    "dplasso plan --epsilon 2 --rows 30000",
    "dplasso plan --epsilon 2 --rows 30000 --method logistic --tries 3",
    note="Shares are of zCDP, which adds up; the epsilons of the parts sum to more than the whole.",
)


def plan(
    epsilon: float,
    rows: int,
    delta: float = 1e-6,
    neighbors: str = "add-remove",
    method: str = "lasso",
    n_iter: int | None = None,
    columns: int = 100_000,
    score: float = 0.1,
    encoding: float = 0.0,
    refit: float = 0.0,
    tries: float = 0.0,
    as_json: bool = False,
) -> None:
    """Divide a budget among encoding, fit or search, second fit and score.

    Privacy
    -------
    epsilon : E
        What everything may spend together.

    Options
    -------
    rows : N >= 1
        About how many rows there are; public.
    columns : D >= 1
        About how many columns there are.
    score : S
        Share of a private score.
    encoding : S
        Share of a private encoding of the columns.
    refit : S
        Share of a second fit.
    tries : M
        Search, with so many tries expected, in place of the fit.
    """
    from dplasso.tuning.plan import plan_budget

    shares = {"score": score, "encoding": encoding, "refit": refit, "tries": tries}
    fit: dict[str, Any] = {"method": method, "n_iter": n_iter}
    parts = plan_budget(epsilon, delta, neighbors=neighbors, **fit, **shares)
    finds = [_finds(part, rows, columns, fit) for part in parts]
    if as_json:
        told = [
            {name: getattr(part, name) for name in ("name", "share", "epsilon", "delta")}
            | {"try_epsilon": part.try_epsilon or None, "finds": found}
            for part, found in zip(parts, finds, strict=True)
        ]
        whole = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors}
        print_json({**whole, "parts": told})
        return
    print_table(
        ["part", ">share", ">epsilon", "what it finds"],
        [
            [part.name, f"{part.share:.0%}", down(part.epsilon), found]
            for part, found in zip(parts, finds, strict=True)
        ],
    )
    print_text("\nA ledger takes the plan:")
    relation = "" if neighbors == "add-remove" else f" --neighbors {neighbors}"
    init = f"  dplasso ledger init L --epsilon {epsilon:g} --delta {delta:g}{relation}"
    print_text(init, wrap=False)
    train = f"DATA --method {method}"
    search = f"tune {train} --grid NAME=V,V --tries {tries:g} --law poisson"
    commands = dict.fromkeys(("fit", "refit"), f"fit {train}")
    commands |= {"search": search, "score": "evaluate model.npz DATA"}
    for part in parts:
        if part.epsilon and part.name in commands:
            spent = f"--epsilon {down(part.epsilon)} --delta {delta:g} --ledger L"
            kept = "" if part.name == "score" else " --model model.npz"
            print_text(f"  dplasso {commands[part.name]} {spent}{kept}", wrap=False)


def _finds(part: "Part", rows: int, columns: int, fit: dict[str, Any]) -> str:
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
    budget = part.try_epsilon or part.epsilon, part.delta
    neighbors = part.mechanism.neighbors
    found = weakest_association(*budget, rows, columns, neighbors=neighbors, **fit)
    told = "nothing"
    if found.part <= 1.0:
        told = f"columns in {found.rows:,.0f} more rows of one class than of the other"
    if part.name == "search":
        return f"{told}, by each try (epsilon about {down(part.try_epsilon)})"
    return told
