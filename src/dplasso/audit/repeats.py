"""Black-box audit of the randomness: releases that repeat each other."""

import math
from collections.abc import Callable

from dplasso.audit.black_box import collect
from dplasso.audit.bounds import repeat_probability
from dplasso.audit.claims import Finding, Target
from dplasso.audit.problems import blank_data

# Columns of the blank data on which releases are compared with each other: with T steps there are
# at least this many to the power T equally likely releases.
_BLANK_COLUMNS = 64

Progress = Callable[[int, int], None]


def audit_repeats(
    target: Target, runs: int, false_alarm: float, progress: Progress | None = None
) -> Finding:
    """Look for repeated releases: noise that is reused, or drawn from too small a seed.

    On empty records every gradient is 0, so the steps of a sound mechanism are uniform and
    independent, and two releases are the same with probability at most 64^-T.

    Parameters
    ----------
    target : Target
        With a claim for enough steps (12, say) to tell releases apart.
    runs : int
        Number of fits; a seed of s bits is noticed from about 2^((s + 5) / 2) on.
    false_alarm, progress
        As in `audit_canary`.

    Returns
    -------
    Finding
        About the randomness; without a bound on epsilon.

    Raises
    ------
    ValueError
        If there are too few steps for that.
    """
    steps = target.claim.n_iter
    chance = repeat_probability(runs, steps * math.log(_BLANK_COLUMNS))
    if chance > false_alarm:
        raise ValueError(f"{steps} steps are too few to tell {runs} releases apart; take more.")
    done = 0

    def count(fits: int) -> None:
        nonlocal done
        done += fits
        if progress is not None:
            progress(done, runs)

    releases = collect(target.fit, blank_data(_BLANK_COLUMNS), runs, count)
    distinct = len(set(releases.names()))
    return Finding(
        name="repeated releases",
        claimed=target.claim.epsilon,
        audited=math.nan,
        delta=target.claim.delta,
        false_alarm=chance,
        violated=distinct < runs,
        about="randomness",
        detail=(
            f"{runs:,} fits on empty records gave {distinct:,} different releases; independent "
            f"ones would repeat with probability below {chance:.1g}"
        ),
        figures={"runs": runs, "distinct": distinct, "p_value_of_one_repeat": chance},
    )
