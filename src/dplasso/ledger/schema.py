"""The layout of a ledger file, an SQLite database; version 5.

Version 4 had neither declarations nor `prior`. Version 3, of dplasso 0.2.0, had no
`rows_per_person` either: its budgets are for each row, and what its charges cover besides is not
known. Older ones are refused.
"""

# In the header of the file, where SQLite keeps it for programs to recognise their own.
APPLICATION_ID = 0x64704C31
SCHEMA_VERSION = 5
OLDEST_VERSION = 3

RESERVED, FINISHED, FAILED = "reserved", "finished", "failed"

_DIGITS = "CHECK (length({0}) > 0 AND {0} NOT GLOB '*[^0-9]*')"
_BUDGET_ROWS = "rows_per_person INTEGER NOT NULL DEFAULT 1 CHECK (rows_per_person >= 1)"
_CHARGE_ROWS = "rows_per_person INTEGER CHECK (rows_per_person >= 1)"
_PRIOR = "prior TEXT"
_DATASET_FIXED = """
CREATE TRIGGER dataset_fixed BEFORE UPDATE ON dataset
    WHEN old.name IS NOT NULL OR new.id IS NOT old.id OR new.epsilon IS NOT old.epsilon
        OR new.delta IS NOT old.delta OR new.neighbors IS NOT old.neighbors
        OR new.digest IS NOT old.digest OR new.draw_delta_limit IS NOT old.draw_delta_limit
        OR new.rows_per_person IS NOT old.rows_per_person
    BEGIN SELECT RAISE (ABORT, 'a budget cannot be changed'); END;
"""

# What the curator says about people: `datasets` are keys, as JSON. Later ones replace earlier ones.
_DECLARATIONS = """
CREATE TABLE declaration (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    datasets TEXT NOT NULL,
    disjoint INTEGER NOT NULL CHECK (disjoint IN (0, 1)),
    user TEXT NOT NULL,
    host TEXT NOT NULL,
    program TEXT NOT NULL,
    declared_at TEXT NOT NULL,
    digest TEXT NOT NULL
);
CREATE TRIGGER declaration_stays BEFORE DELETE ON declaration
    BEGIN SELECT RAISE (ABORT, 'a declaration cannot leave a ledger'); END;
CREATE TRIGGER declaration_fixed BEFORE UPDATE ON declaration
    BEGIN SELECT RAISE (ABORT, 'a declaration cannot be changed'); END;
"""

# `release` is a digest of what the fit released that an entry paid for, once it has ended.
# Sums of rho and delta pass 64 bits, so they are text of decimal digits. `eps0` is 0 where a charge
# has no bounded-range parameter. Triggers keep what was charged from being changed or removed, by
# this program or another.
SCHEMA = f"""
CREATE TABLE dataset (
    id INTEGER PRIMARY KEY,
    name TEXT UNIQUE CHECK (length(name) > 0),
    epsilon REAL NOT NULL CHECK (epsilon > 0),
    delta REAL NOT NULL CHECK (delta > 0 AND delta < 1),
    neighbors TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    digest TEXT NOT NULL,
    draw_delta_limit TEXT NOT NULL {_DIGITS.format("draw_delta_limit")},
    {_BUDGET_ROWS}
);
CREATE TABLE entry (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset INTEGER NOT NULL REFERENCES dataset (id),
    token TEXT NOT NULL UNIQUE,
    rho TEXT NOT NULL {_DIGITS.format("rho")},
    draw_delta TEXT NOT NULL {_DIGITS.format("draw_delta")},
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    n_iter INTEGER NOT NULL,
    eps0 REAL NOT NULL,
    neighbors TEXT NOT NULL,
    mechanism TEXT NOT NULL,
    user TEXT NOT NULL,
    host TEXT NOT NULL,
    program TEXT NOT NULL,
    process INTEGER NOT NULL,
    reserved_at TEXT NOT NULL,
    digest TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('{RESERVED}', '{FINISHED}', '{FAILED}')),
    ended_at TEXT,
    release TEXT,
    purpose TEXT,
    fingerprint TEXT,
    {_CHARGE_ROWS},
    {_PRIOR}
);
CREATE TRIGGER dataset_stays BEFORE DELETE ON dataset
    BEGIN SELECT RAISE (ABORT, 'a data set cannot leave a ledger'); END;
{_DATASET_FIXED}
CREATE TRIGGER entry_stays BEFORE DELETE ON entry
    BEGIN SELECT RAISE (ABORT, 'an entry cannot leave a ledger'); END;
CREATE TRIGGER entry_fixed BEFORE UPDATE ON entry
    WHEN old.state IS '{FINISHED}' OR new.digest IS NOT old.digest
        OR new.number IS NOT old.number OR new.dataset IS NOT old.dataset
        OR new.token IS NOT old.token OR new.rho IS NOT old.rho
        OR new.draw_delta IS NOT old.draw_delta
    BEGIN SELECT RAISE (ABORT, 'an entry cannot be changed'); END;
{_DECLARATIONS}
"""

# From each older version to the next.
UPGRADES = {
    3: f"""
DROP TRIGGER dataset_fixed;
ALTER TABLE dataset ADD COLUMN {_BUDGET_ROWS};
ALTER TABLE entry ADD COLUMN {_CHARGE_ROWS};
{_DATASET_FIXED}
PRAGMA user_version = 4;
""",
    4: f"""
ALTER TABLE entry ADD COLUMN {_PRIOR};
{_DECLARATIONS}
PRAGMA user_version = 5;
""",
}

# Columns of an entry that its digest covers, in this order.
ENTRY_FIXED = (
    *("dataset", "token", "rho", "draw_delta", "epsilon", "delta", "n_iter", "eps0"),
    *("neighbors", "mechanism", "user", "host", "program", "process", "reserved_at"),
)
# Covered where an entry has one of them.
ENTRY_NOTES = ("purpose", "fingerprint")
# The same for a declaration.
DECLARATION_FIXED = ("datasets", "disjoint", "user", "host", "program", "declared_at")
# The same for a budget, with its limit, and the rows of a person where they are several.
DATASET_FIXED = ("epsilon", "delta", "neighbors")
