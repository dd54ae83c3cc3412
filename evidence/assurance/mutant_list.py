"""All planted bugs. Each names the one test that must fail; see `assurance.mutants`."""

from evidence.assurance.planted_leaks import LEAKS, STEP
from evidence.assurance.planted_numbers import ACCOUNTING, INTEGRITY, RANDOMNESS, SELECTION

MUTANTS = STEP + LEAKS + ACCOUNTING + RANDOMNESS + SELECTION + INTEGRITY
