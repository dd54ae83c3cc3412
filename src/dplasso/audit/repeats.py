"""Black-box audit of the randomness: releases that repeat each other."""

import math

from dplasso.audit.black_box import Progress, collect, counter
from dplasso.audit.bounds import repeat_probability
from dplasso.audit.claims import Finding, Target, finding
from dplasso.audit.problems import blank_data

# Columns of the blank data on which releases are compared with each other: with T steps there are
# at least this many to the power T equally likely releases.
_BLANK_COLUMNS = 64


def audit_repeats(
    target: Target, runs: int, false_alarm: float, progress: Progress | None = None
) -> Finding:
    """Look for repeated releases: noise that is reused, or drawn from too small a seed.

    On empty records every gradient is 0, so the steps of a sound mechanism are uniform and
    independent, and two releases are the same with probability at most 64^-T. A seed of s bits is
    noticed from about 2^((s + 5) / 2) runs on. Raises ValueError if there are too few steps (12,
    say, are enough) to tell releases apart.
    """
    steps = target.claim.n_iter
    chance = repeat_probability(runs, steps * math.log(_BLANK_COLUMNS))
    if chance > false_alarm:
        raise ValueError(f"{steps} steps are too few to tell {runs} releases apart; take more.")
    releases = collect(target.fit, blank_data(_BLANK_COLUMNS), runs, counter(progress, runs))
    distinct = len(set(releases.names()))
    return finding(
        target.claim,
        "repeated releases",
        "randomness",
        math.nan,
        false_alarm=chance,
        violated=distinct < runs,
        detail=(
            f"{runs:,} fits on empty records gave {distinct:,} different releases; independent "
            f"ones would repeat with probability below {chance:.1g}"
        ),
        figures={"runs": runs, "distinct": distinct, "p_value_of_one_repeat": chance},
    )
