"""``dplasso report``: a model as one page to be read, printed and signed."""

from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from dplasso.cli.files import check_outputs, write_file
from dplasso.cli.options import examples
from dplasso.cli.output import print_facts, uninterrupted

if TYPE_CHECKING:
    from dplasso.model import Model

EXAMPLES = examples(
    "dplasso report model.npz --out report.html",
    "dplasso report model.npz --out report.html --ledger team.ledger",
    note="With --ledger the page names the entry that paid for the model, its purpose and what is "
    "spent: the curator decides whether that part is handed on.",
)


def report(model: Path, output: Path, ledger: Path | None = None, force: bool = False) -> None:
    """Write what a model promises and holds on one page that can be printed and signed.

    Output
    ------
    output : OUT.html
        Write the page here.

    Options
    -------
    ledger : LEDGER
        Look up the entry that paid for the model here.
    """
    from dplasso.model import read_model
    from dplasso.model.file import written_by
    from dplasso.model.report import report_page

    inputs = [model] if ledger is None else [model, ledger]
    check_outputs([output], inputs, force=force)
    held = read_model(model)
    page = report_page(
        held,
        file={
            "file": model.name,
            "SHA-256": sha256(model.read_bytes()).hexdigest(),
            "written by": written_by(model),
            "reported by": f"dplasso {version('dplasso')}",
            "date of this report": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        },
        ledger="No ledger was given to this report." if ledger is None else _paid(held, ledger),
    )
    with uninterrupted():
        write_file(output, page)
    print_facts({"written": str(output)})


def _paid(model: "Model", ledger: Path) -> dict[str, str] | str:
    """Word the entry of a ledger that paid for a model."""
    from dplasso.ledger import read_budgets
    from dplasso.ledger.refusal import protected
    from dplasso.model.release import digest_of
    from dplasso.privacy.wording import rounded_up

    digest = digest_of(model.release)
    paid = ((budget, entry) for budget in read_budgets(ledger) for entry in budget.entries)
    for budget, entry in paid:
        if entry.release != digest:
            continue
        return {
            "entry": f"{entry.number} of {ledger.name}",
            "data set": budget.name or "(without a name)",
            "purpose": entry.charge.purpose or "(none given)",
            "charged": f"epsilon {rounded_up(entry.charge.epsilon)} at delta "
            f"{rounded_up(entry.charge.delta)}, {entry.reserved_at}",
            "budget": f"epsilon {rounded_up(budget.epsilon)} at delta "
            f"{rounded_up(budget.delta)} for all fits on this data set, for "
            f"{protected(budget.rows_per_person)}",
        }
    return (
        f"No entry of {ledger.name} has paid for this model: it was charged elsewhere, before "
        "entries held digests, or not at all."
    )
