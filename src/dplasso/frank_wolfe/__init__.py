"""Frank-Wolfe over the L1 ball: the two algorithms and what they share."""
