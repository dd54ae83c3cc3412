"""Schemas and their parts, for tests outside their room."""

from dplasso import PublicEncoder
from dplasso.encoding import hashed, levels, origin, parts, schema

Bins, Categories, Cross, Date = parts.Bins, parts.Categories, parts.Cross, parts.Date
Number, Pairs, Levels = parts.Number, parts.Pairs, levels.Levels
Hashed, Text = hashed.Hashed, hashed.Text
Schema, read_schema = schema.Schema, schema.read_schema
Origin, origin_of, with_origin = origin.Origin, origin.origin_of, origin.with_origin


def schema_of(document):
    """Return the schema of a document."""
    return PublicEncoder(document).schema_
