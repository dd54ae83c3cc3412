"""Edges of bins that were released from records: what a schema, and a fit with it, says of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dplasso.errors import ParameterError
from dplasso.privacy.budget import Budget
from dplasso.privacy.statement import PrivacyStatement, StatedRelease
from dplasso.privacy.wording import rounded_up


@dataclass(frozen=True)
class ReleasedEdges:
    """Bins of `columns` whose edges are private quantiles of the records that are to be fitted.

    `digest`: of the release that they follow from, as a ledger's entry has it.
    `by_person`: whether the release was told whose each row is, and so protects people; otherwise
    it protects rows.
    """

    columns: tuple[str, ...]
    digest: str
    statement: PrivacyStatement
    by_person: bool = False

    @property
    def stated(self) -> StatedRelease:
        """What the statement of a fit says of them."""
        return StatedRelease(
            "edges",
            f"edges of the bins of {', '.join(self.columns)} at private quantiles of the same "
            f"records ({rounded_up(self.statement.mu)}-GDP, {self.digest[:12]})",
            {"mu": self.statement.mu},
        )

    def before(self, budget: Budget, *, seeded: bool, by_person: bool) -> Budget:
        """Return a fit's budget with room for the edges, which its epsilon is to cover.

        `by_person`: whether the fit is told whose each row is. Edges and fit must protect the same.
        A person may have any number of rows in edges that were not told. And without one row of a
        person, edges that were told may count another row of that person instead.
        """
        ours = self.statement
        if budget.leak:
            return budget
        if ours.neighbors != budget.neighbors:
            raise ParameterError(
                f"the schema's edges were released for `neighbors={ours.neighbors!r}`; fit with "
                f"the same, not {budget.neighbors!r}"
            )
        if by_person != self.by_person:
            units = {False: "single rows", True: "people"}
            raise ValueError(
                f"the schema's edges protect {units[self.by_person]}, but this fit protects "
                f"{units[by_person]}: release the edges and fit with the same groups "
                "(--person-column), or both without"
            )
        if not (ours.is_private or seeded):
            raise ValueError(
                "the schema's edges were released with `random_state`, so no fit with them is "
                "private; release them without it"
            )
        times = math.ceil(budget.rows_per_person / ours.rows_per_person)
        return budget.after(times * ours.mu)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        statement = self.statement.to_dict()
        return {
            "columns": list(self.columns),
            "digest": self.digest,
            "statement": statement,
            "by_person": self.by_person,
        }


def edges_from_json(document: Any) -> ReleasedEdges | None:
    """Read what `to_json` returned; None for nothing, ValueError for anything else."""
    if document is None:
        return None
    # Files of earlier versions do not say whom their edges protect: rows alone, for all we know.
    known = {"columns", "digest", "statement", "by_person"}
    if not isinstance(document, Mapping) or set(document) | {"by_person"} != known:
        raise ValueError("edges say columns, digest and statement, as their release wrote them")
    columns, digest = document["columns"], document["digest"]
    by_person = document.get("by_person", False)
    if not (isinstance(digest, str) and isinstance(columns, list) and isinstance(by_person, bool)):
        raise ValueError("edges have a digest, a list of columns, and true or false for by_person")
    try:
        statement = PrivacyStatement.from_dict(document["statement"])
    except (TypeError, OverflowError) as error:
        raise ValueError(f"the statement of edges is damaged: {error}") from None
    if statement.about != "edges" or not math.isfinite(statement.mu):
        raise ValueError("the statement of edges is not one of their release")
    return ReleasedEdges(tuple(map(str, columns)), digest, statement, by_person)
