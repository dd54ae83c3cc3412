"""From tables to sparse rows by a public schema: nothing is learnt from the records."""
