"""``dplasso ledger ...``: one budget for all fits on a data set."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape

from dplasso.cli import options
from dplasso.cli.commands import Command, command_group
from dplasso.cli.options import argument, option
from dplasso.cli.output import print_json, print_table, print_text

if TYPE_CHECKING:
    from dplasso.privacy.ledger import Budget, Charge
    from dplasso.privacy.statement import PrivacyStatement

LedgerArgument = Annotated[Path, argument("LEDGER", "The ledger's file.")]
NameArgument = Annotated[str, argument("NAME", "The data set's name.")]
BudgetEpsilon = Annotated[
    float, option("--epsilon", "What all fits on the data set may spend together.", "E")
]
BudgetDelta = Annotated[
    float,
    option("--delta", "Probability with which the promise about all fits together may fail.", "D"),
]

app = command_group(
    "ledger",
    "Keep one privacy budget for all fits on a data set: who spent what, and what is left.",
    options.examples(
        "dplasso ledger init team.ledger --epsilon 3 --delta 1e-5 --dataset visits",
        "dplasso ledger plan team.ledger --fits 5",
        "dplasso fit train.svm.gz --epsilon 1 --ledger team.ledger --dataset visits",
        "dplasso ledger show team.ledger",
    ),
)


@app.command(
    "init",
    cls=Command,
    epilog=options.examples(
        "dplasso ledger init team.ledger --epsilon 3 --delta 1e-5 --dataset visits",
        note="Without --dataset the first fit that names a data set names it.",
    ),
)
def init(
    ledger: LedgerArgument,
    epsilon: BudgetEpsilon,
    delta: BudgetDelta,
    dataset: options.DatasetName = None,
    neighbors: options.Neighbors = "add-remove",
) -> None:
    """Create a ledger with the budget of one data set."""
    from dplasso.privacy.ledger import create_ledger

    create_ledger(ledger, epsilon, delta, dataset=dataset, neighbors=neighbors)


@app.command(
    "add",
    cls=Command,
    epilog=options.examples(
        "dplasso ledger add team.ledger referrals --epsilon 1 --delta 1e-6",
        note="Each data set has a budget of its own: use this for records of other people only.",
    ),
)
def add(
    ledger: LedgerArgument,
    name: NameArgument,
    epsilon: BudgetEpsilon,
    delta: BudgetDelta,
    neighbors: options.Neighbors = "add-remove",
) -> None:
    """Add the budget of one more data set."""
    from dplasso.privacy.ledger import add_dataset

    add_dataset(ledger, name, epsilon, delta, neighbors=neighbors)


@app.command("name", cls=Command, epilog=options.examples("dplasso ledger name team.ledger visits"))
def name(ledger: LedgerArgument, name: NameArgument) -> None:
    """Name the data set of a ledger that was created without --dataset."""
    from dplasso.privacy.ledger import name_dataset

    name_dataset(ledger, name)


@app.command(
    "spend",
    cls=Command,
    epilog=options.examples(
        "dplasso ledger spend team.ledger --dataset visits --epsilon 0.5 --n-iter 300",
        "dplasso ledger spend team.ledger --dataset visits --epsilon 0.5 --method logistic",
        note="For fits that were made before the ledger, or without it. There is no way back.",
    ),
)
def spend(
    ledger: LedgerArgument,
    epsilon: options.Epsilon,
    delta: options.Delta = 1e-6,
    n_iter: options.Steps = None,
    method: options.Method = "lasso",
    dataset: options.DatasetName = None,
) -> None:
    """Charge a fit that was made elsewhere."""
    from dplasso.privacy.ledger import finish, pick, read_budgets, reserve

    budget = pick(read_budgets(ledger), dataset, ledger)
    fit = Planned(method, delta, n_iter)
    finish(reserve(ledger, dataset, _charge(budget, epsilon, fit)))
    print_text(left_sentence(_left(ledger, dataset, fit)), wrap=False)


@app.command(
    "show",
    cls=Command,
    epilog=options.examples(
        "dplasso ledger show team.ledger",
        "dplasso ledger show team.ledger --epsilon 0.5 --n-iter 300",
        "dplasso ledger show team.ledger --json",
        note="For the curator: it names people and machines.",
    ),
)
def show(
    ledger: LedgerArgument,
    dataset: options.DatasetName = None,
    epsilon: Annotated[
        float | None,
        option("--epsilon", "Also say what one more fit of this epsilon would leave.", "E"),
    ] = None,
    delta: options.Delta = 1e-6,
    n_iter: options.Steps = None,
    method: options.Method = "lasso",
    as_json: options.AsJson = False,
) -> None:
    """Say who spent what, what is left, and what one more fit would leave."""
    from dplasso.privacy.ledger import pick, read_budgets

    budgets = read_budgets(ledger)
    if dataset is not None:
        budgets = (pick(budgets, dataset, ledger),)
    reports = [_report(budget, epsilon, Planned(method, delta, n_iter)) for budget in budgets]
    if as_json:
        print_json({"ledger": ledger, "datasets": reports})
        return
    for report in reports:
        _print(report)


@app.command(
    "plan",
    cls=Command,
    epilog=options.examples(
        "dplasso ledger plan team.ledger",
        "dplasso ledger plan team.ledger --dataset visits --fits 31 --n-iter 50",
        note="A grid search of C candidates on F folds is C x F + 1 fits.",
    ),
)
def plan(
    ledger: LedgerArgument,
    dataset: options.DatasetName = None,
    fits: Annotated[int, option("--fits", "How many equal fits.", "K", min=1)] = 1,
    delta: options.Delta = 1e-6,
    n_iter: options.Steps = None,
    method: options.Method = "lasso",
    as_json: options.AsJson = False,
) -> None:
    """Say which epsilon to give each of K fits so that they use up what is left."""
    from dplasso.privacy.ledger import largest_epsilon, pick, read_budgets

    budget = pick(read_budgets(ledger), dataset, ledger)
    fit = Planned(method, delta, n_iter)
    left = largest_epsilon(budget, **fit.settings, fits=fits)
    if as_json:
        steps = fit.settings["n_iter"]
        settings = {"epsilon": left, "delta": delta, "n_iter": steps, "method": method}
        print_json({"dataset": budget.name, "fits": fits, **settings})
    elif left == 0:
        print_text(f"Nothing is left of the budget{_called(budget.name)}.", wrap=False)
    else:
        each = "One more fit" if fits == 1 else f"Each of {fits:,} more fits"
        print_text(
            f"{each} with {_words(delta, fit.settings['n_iter'], ' and ')} can have epsilon "
            f"{_down(left)}{_called(budget.name, ' on')}.",
            wrap=False,
        )


@dataclass(frozen=True)
class Planned:
    """A fit that is yet to be made; without a number of steps it takes its method's own."""

    method: str
    delta: float
    n_iter: int | None = None

    def __post_init__(self) -> None:
        from dplasso.training.cost import METHODS

        if self.method not in METHODS:
            raise ValueError(f"method must be lasso or logistic, got {self.method!r}")

    @property
    def settings(self) -> dict[str, Any]:
        """What `dplasso.privacy.ledger.largest_epsilon` asks of it."""
        planned = self.mechanism(1.0, "add-remove")
        return {"delta": self.delta, "n_iter": planned.n_iter, "mechanism": planned.name}

    def mechanism(self, epsilon: float, neighbors: str) -> Any:
        """Return its private step."""
        from dplasso.training.cost import mechanism_for

        return mechanism_for(
            self.method,
            epsilon=epsilon,
            delta=self.delta,
            n_iter=self.n_iter,
            neighbors=neighbors,
            **({"plain_sum": False} if self.method == "lasso" and self.n_iter else {}),
        )


def left_in(ledger: Path, dataset: str | None, statement: "PrivacyStatement") -> dict[str, Any]:
    """Return a data set's budget, what is spent of it, and what is left for another such fit."""
    method = "logistic" if statement.mechanism == "gaussian" else "lasso"
    steps = statement.steps if statement.mechanism in ("gaussian", "exponential") else None
    return _left(ledger, dataset, Planned(method, statement.delta, steps))


def _left(ledger: Path, dataset: str | None, fit: Planned) -> dict[str, Any]:
    from dplasso.privacy.ledger import pick, read_budgets

    report = _report(pick(read_budgets(ledger), dataset, ledger), None, fit)
    kept = ("dataset", "epsilon", "delta", "epsilon_spent", "epsilon_left")
    return {key: report[key] for key in kept}


def left_sentence(report: dict[str, Any]) -> str:
    """Word what `left_in` returns."""
    left = report["epsilon_left"]
    return (
        f"charged{_called(report['dataset'], ' to')}: epsilon {_up(report['epsilon_spent'])} of "
        f"{_up(report['epsilon'])} spent at delta {_up(report['delta'])}, "
        + (f"another fit can have {_down(left)}" if left else "nothing is left")
    )


def _charge(budget: "Budget", epsilon: float, fit: Planned) -> "Charge":
    """Return what a fit costs in this budget."""
    from dplasso.privacy.ledger import charge_of

    return charge_of(fit.mechanism(epsilon, budget.neighbors))


def _report(budget: "Budget", epsilon: float | None, fit: Planned) -> dict[str, Any]:
    """Put together all that is said about one data set, as JSON says it."""
    from dplasso.privacy.ledger import UNITS, epsilon_total, largest_epsilon, rho_limit

    whole = max(rho_limit(budget), budget.rho)
    entries = [
        {
            "number": entry.number,
            "state": entry.state,
            "epsilon": entry.charge.epsilon,
            "delta": entry.charge.delta,
            "n_iter": entry.charge.n_iter,
            "eps0": entry.charge.eps0,
            "rho": entry.charge.rho / UNITS,
            "draw_delta": entry.charge.draw_delta / UNITS,
            # Of the budget as it is now; epsilons do not add up, these do.
            "share": entry.charge.rho / whole if whole else None,
            "user": entry.user,
            "host": entry.host,
            "process": entry.process,
            "program": entry.program,
            "reserved_at": entry.reserved_at,
            "ended_at": entry.ended_at,
        }
        for entry in budget.entries
    ]
    report: dict[str, Any] = {
        "dataset": budget.name,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "neighbors": budget.neighbors,
        "epsilon_spent": epsilon_total(budget.rho, budget.draw_delta, budget.delta),
        "rho_spent": budget.rho / UNITS,
        "rho_left": max(0, whole - budget.rho) / UNITS,
        "draw_delta_spent": budget.draw_delta / UNITS,
        "epsilon_left": largest_epsilon(budget, **fit.settings),
        "another_fit": {"method": fit.method, "delta": fit.delta, "n_iter": fit.settings["n_iter"]},
        "entries": entries,
    }
    if epsilon is not None:
        report["another_fit"] |= _after(budget, epsilon, fit)
    return report


def _after(budget: "Budget", epsilon: float, fit: Planned) -> dict[str, Any]:
    """Say what one more fit would leave."""
    from dataclasses import replace

    from dplasso.privacy.ledger import Entry, affords, epsilon_total, largest_epsilon

    charge = _charge(budget, epsilon, fit)
    answer: dict[str, Any] = {"epsilon": epsilon, "allowed": affords(budget, charge)}
    if answer["allowed"]:
        entry = Entry(0, "planned", charge, "", "", "", 0, "", None)
        after = replace(budget, entries=(*budget.entries, entry))
        answer["epsilon_spent_after"] = epsilon_total(after.rho, after.draw_delta, after.delta)
        answer["epsilon_left_after"] = largest_epsilon(after, **fit.settings)
    return answer


def _print(report: dict[str, Any]) -> None:
    """Print one data set for a person."""
    another, entries = report["another_fit"], report["entries"]
    print_text(
        f"{report['dataset'] or '(a data set without a name)'}: epsilon {_up(report['epsilon'])} "
        f"at delta {_up(report['delta'])}, {report['neighbors']}",
        "bold",
        wrap=False,
    )
    if entries:
        _print_entries(entries)
    left = report["epsilon_left"]
    fits = "1 fit" if len(entries) == 1 else f"{len(entries):,} fits"
    print_text(
        f"Spent: epsilon {_up(report['epsilon_spent'])} by {fits}. "
        + (
            f"Left: one more fit ({_words(another['delta'], another['n_iter'])}) can have "
            f"epsilon {_down(left)}."
            if left
            else "Nothing is left."
        ),
        wrap=False,
    )
    if "epsilon" in another:
        print_text(_after_sentence(another), wrap=False)
    print_text()


def _after_sentence(another: dict[str, Any]) -> str:
    fit = f"fit of epsilon {_up(another['epsilon'])}"
    if not another["allowed"]:
        return f"A {fit} would be refused."
    return (
        f"After a {fit}: {_up(another['epsilon_spent_after'])} spent, and one more can have "
        f"{_down(another['epsilon_left_after'])}."
    )


def _print_entries(entries: list[dict[str, Any]]) -> None:
    headings = (">fit", "reserved (UTC)", "by", ">epsilon", ">delta", ">iterations", ">share")
    rows = [
        (
            str(entry["number"]),
            entry["reserved_at"][:19].replace("T", " "),
            escape(f"{entry['user']}@{entry['host']}"),
            _up(entry["epsilon"]),
            _up(entry["delta"]),
            f"{entry['n_iter']:,}",
            f"{entry['share']:.1%}" if entry["share"] is not None else "",
            "running or died" if entry["state"] == "reserved" else entry["state"],
        )
        for entry in entries
    ]
    print_table([*headings, "state"], rows)


def _called(name: str | None, word: str = " of") -> str:
    return "" if name is None else f"{word} {name!r}"


def _words(delta: float, n_iter: int, between: str = ", ") -> str:
    return f"delta {_up(delta)}{between}{n_iter:,} iterations"


def _up(value: float) -> str:
    from dplasso.privacy.wording import rounded_up

    return rounded_up(value, 6)


def _down(epsilon: float) -> str:
    from dplasso.privacy.ledger.refusal import rounded_down

    return rounded_down(epsilon)
