"""Public rows without labels on the command line."""

import pytest

import dplasso
from cli_runs import done, found, said
