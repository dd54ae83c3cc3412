"""What neighbouring data sets differ in, and how far that moves a sum: the one place.

With "label" the records of neighbours have the same features, weights and people, and one record
has another label or target. Such neighbours are also neighbours of "replace-one", so whatever is
sound for those is sound here. In addition, what depends on features alone does not move at all.
"""

from typing import Any, NamedTuple

from dplasso.privacy.parameters import check_choice


class Relation(NamedTuple):
    """A neighbour relation.

    `times`: how many contributions of one record a sum moves by at most.
    `hides_features`: whether the rows of neighbours differ, and not only the labels.
    `changed`, `exchanged`: what happens to records, in words of a statement and of a report.
    """

    times: float
    hides_features: bool
    changed: str
    exchanged: str

    def part(self, rows_per_person: int = 1) -> str:
        """Return the words for the labels alone of one or several rows; none for whole rows."""
        if self.hides_features:
            return ""
        return "the label of " if rows_per_person == 1 else "the labels of "

    def protected(self, rows_per_person: int = 1) -> str:
        """Say what a promise protects."""
        whom = f"each person with up to {rows_per_person:,} rows"
        return self.part(rows_per_person) + ("each row" if rows_per_person == 1 else whom)


RELATIONS = {
    "add-remove": Relation(1.0, True, "added or removed", "left out"),
    "replace-one": Relation(2.0, True, "replaced by {others}", "exchanged for others"),
    "label": Relation(2.0, False, "given {labels}", "given other labels"),
}


def check_neighbors(neighbors: Any) -> str:
    """Return the name of the neighbour relation."""
    return check_choice("neighbors", neighbors, tuple(RELATIONS))


def keeps_labels_alone(neighbors: str) -> bool:
    """Return whether only labels are private under a relation."""
    return not RELATIONS[neighbors].hides_features
