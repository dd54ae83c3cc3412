"""Stores that know whose each row is, made from matrices."""

from dataclasses import replace

from evidence.matrices import matrix_source

from dplasso.data.people import WORDS, hash_people
from dplasso.data.store import write_store


def write_with_people(X, y, people, place, memory=2**28, *, block=None, **options):
    """Write a store of rows and of the people they are of, in blocks of so much memory."""
    source = matrix_source(X, y)
    hashes = hash_people(list(people), str)[0].reshape(-1, WORDS)

    def blocks(given, progress=None):
        first = 0
        for some in source.blocks(block or given, progress):
            last = first + some.labels.size
            yield some._replace(people=hashes[first:last].ravel())
            first = last

    return write_store(replace(source, blocks=blocks), place, memory=memory, **options)
