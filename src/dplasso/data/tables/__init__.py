"""Tables: Parquet and Arrow files, hashed and declared columns."""
