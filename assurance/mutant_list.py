"""All planted bugs. Each names the one test that must fail; see `assurance.mutants`."""

from assurance.planted_leaks import LEAKS, STEP
from assurance.planted_numbers import ACCOUNTING, INTEGRITY, RANDOMNESS, SELECTION

MUTANTS = STEP + LEAKS + ACCOUNTING + RANDOMNESS + SELECTION + INTEGRITY
