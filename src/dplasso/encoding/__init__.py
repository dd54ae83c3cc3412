"""Encode tables as sparse rows by a public schema, without learning from the records."""
