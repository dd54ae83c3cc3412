"""Stores that know whose each row is, made from matrices."""

from dataclasses import replace
from hashlib import blake2b

import numpy as np

from dplasso.data.matrices import matrix_source
from dplasso.data.store import write_store


def hashes_of(names):
    """Return what a store keeps of each text: 127 bits and a 1, as two numbers."""
    digests = (blake2b(str(name).encode(), digest_size=16).digest() for name in names)
    return np.frombuffer(b"".join(digests), "<i8").reshape(-1, 2) | [0, 1]


def write_with_people(X, y, people, place, memory=2**28, *, block=None, **options):
    """Write a store of rows and of the people they are of, in blocks of so much memory."""
    source = matrix_source(X, y)
    hashes = hashes_of(people)

    def blocks(given, progress=None):
        first = 0
        for some in source.blocks(block or given, progress):
            last = first + some.labels.size
            yield some._replace(people=hashes[first:last].ravel())
            first = last

    return write_store(replace(source, blocks=blocks), place, memory=memory, **options)
