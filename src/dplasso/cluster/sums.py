"""Sums of many workers' answers, added up where the answers are: a tree."""

from collections.abc import Sequence

from dplasso.cluster.engines import Held

# So many answers the coordinator fetches itself; of more, groups of so many are added up before.
FAN_IN = 4


def tree_of(held: Sequence[Held]) -> list[Held]:
    """Begin to add up answers that workers hold, so that at most `FAN_IN` are left.

    Integers: neither the order nor the shape of the tree changes a bit of the sum.
    """
    found = list(held)
    while len(found) > FAN_IN:
        groups = [found[first : first + FAN_IN] for first in range(0, len(found), FAN_IN)]
        found = [one.add(others) if others else one for one, *others in groups]
    return found
