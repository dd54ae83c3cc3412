"""CSV and JSON lines: records of named fields."""
