"""Slow, obvious versions of the structures' kernels."""


def level_of(folded, shift, bits):
    """Return the bucket level of a gradient a >= 0, or of -a - 1, from the size of its number."""
    steps = folded // 2**shift
    octave = max(0, steps.bit_length() - bits - 1)
    return octave * 2**bits + steps // 2**octave


def first_largest(alpha):
    """Return the argmax of |alpha|, the first of equals."""
    return max(range(len(alpha)), key=lambda k: (abs(int(alpha[k])), -k))


def jump_walk(ticks, words):
    """Return the index A-ExpJ ends at, in unbounded integers; `words` come two per jump."""
    words = iter(words)
    chosen, passed, index = 0, ticks[0], 1
    while index < len(ticks):
        u = next(words) * 2**64 + next(words)
        while index < len(ticks) and u * (sum(ticks[: index + 1])) < passed * 2**128:
            index += 1
        if index < len(ticks):
            chosen, passed = index, sum(ticks[: index + 1])
            index += 1
    return chosen
