"""svmlight text, read slowly."""

import re

import numpy as np

_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class BadLineError(Exception):
    """The number of the first line that is not svmlight."""


def svmlight_records(text, *, zero_based=False, n_features=None):
    """Return [(label, [(column, value), ...]), ...], values rounded to float32."""
    records = []
    for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        tokens = line.split(b"#")[0].split()
        if not tokens:
            continue
        try:
            records.append(_svmlight_record(tokens, zero_based, n_features))
        except ValueError as error:
            raise BadLineError(number) from error
    return records


def _svmlight_record(tokens, zero_based, n_features):
    label = _finite(tokens[0], np.float64)
    rest = tokens[1:]
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


def _finite(token, dtype):
    if not _NUMBER.fullmatch(token):
        raise ValueError("number")
    with np.errstate(over="ignore"):
        number = dtype(float(token))
    if not np.isfinite(number):
        raise ValueError("not finite")
    return number
