"""Slow, obvious twins of the compiled kernels, and other oracles that tests compare with."""

import re
from decimal import Decimal, localcontext
from itertools import combinations

import numpy as np

# --- data: svmlight text -----------------------------------------------------------------

_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class BadLineError(Exception):
    """The number of the first line that is not svmlight."""


def svmlight_records(text, *, zero_based=False, n_features=None, label_map=None):
    """Return [(label, [(column, value), ...]), ...], values rounded to float32."""
    records = []
    for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        tokens = line.split(b"#")[0].split()
        if not tokens:
            continue
        try:
            records.append(_svmlight_record(tokens, zero_based, n_features, label_map))
        except ValueError as error:
            raise BadLineError(number) from error
    return records


def _svmlight_record(tokens, zero_based, n_features, label_map):
    if label_map is None:
        label = _finite(tokens[0], np.float64)
    else:
        label = np.float64(_mapped_label(tokens[0], label_map))
    rest = tokens[1:]
    if rest and rest[0].startswith(b"qid:"):
        if not re.fullmatch(rb"qid:-?[0-9]+", rest[0]):
            raise ValueError("query")
        rest = rest[1:]
    entries = []
    for token in rest:
        index, value = token.split(b":")
        if not re.fullmatch(rb"[0-9]+", index):
            raise ValueError("index")
        index = index.lstrip(b"0") or b"0"
        if len(index) > 20:
            raise ValueError("column")
        column = int(index) - (0 if zero_based else 1)
        end = 2**63 - 1 if n_features is None else n_features
        if not 0 <= column < end or (entries and column <= entries[-1][0]):
            raise ValueError("column")
        entries.append((column, _finite(value, np.float32)))
    return label, entries


def _mapped_label(token, label_map):
    for key, value in label_map.items():
        key = key.encode()
        if _NUMBER.fullmatch(key):
            same = _NUMBER.fullmatch(token) and float(token) == float(key)
        else:
            same = token == key
        if same:
            return value
    raise ValueError("label")


def _finite(token, dtype):
    if not _NUMBER.fullmatch(token):
        raise ValueError("number")
    with np.errstate(over="ignore"):
        number = dtype(float(token))
    if not np.isfinite(number):
        raise ValueError("not finite")
    return number


# --- data: crosses -----------------------------------------------------------------------


def crosses_by_name(names, order):
    """Return the set of crosses of one record whose columns, of different attributes, are named."""
    return {" & ".join(pick) for size in range(1, order + 1) for pick in combinations(names, size)}


# --- selection ----------------------------------------------------------------------------


def vertex_weights(alpha, exponent, *, signed=True):
    """Return Decimals [(weight of -e_j, weight of +e_j), ...], to 60 digits, largest near 1."""
    with localcontext() as context:
        context.prec = 60
        context.Emin, context.Emax = -(10**17), 10**17
        largest = max(abs(int(a)) for a in alpha)
        scale = Decimal(exponent)
        pairs = []
        for a in map(int, alpha):
            if signed:
                pairs.append(tuple((scale * (s * a - largest)).exp() for s in (1, -1)))
            else:
                weight = (scale * (abs(a) - largest)).exp()
                pairs.append((weight, Decimal(0)) if a >= 0 else (Decimal(0), weight))
        return pairs


def vertex_probabilities(alpha, exponent, *, signed=True):
    """Return the closed form of every selection as an array (D, 2); see `vertex_weights`."""
    pairs = vertex_weights(alpha, exponent, signed=signed)
    total = sum(a + b for a, b in pairs)
    return np.array([[float(a / total), float(b / total)] for a, b in pairs])


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
