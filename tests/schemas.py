"""Parts of schemas, made from the documents that users write."""

from functools import partial

from dplasso import PublicEncoder


def schema_of(document):
    """Return the schema of a document."""
    return PublicEncoder(document).schema_


def part(kind, column, **options):
    """Return one part of a schema."""
    return schema_of({"parts": [{"kind": kind, "column": column, **options}]}).parts[0]


def number(column, bound, center=0.0, missing="column"):
    return part("number", column, bound=bound, center=center, missing=missing)


def levels(column, low, high, levels=(4, 16, 64), spacing="equal", missing="column"):
    levels = list(levels) if isinstance(levels, tuple) else levels
    known = {"levels": levels, "spacing": spacing, "missing": missing}
    return part("levels", column, low=low, high=high, **known)


date = partial(part, "date")


def with_pairs(schema):
    """Return a schema with the pairs of all columns that it can pair."""
    document = schema.to_json()
    document["parts"].append({"kind": "pairs"})
    return schema_of(document)
