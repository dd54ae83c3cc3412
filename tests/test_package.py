"""Importing the package costs nothing until a name is used."""

import subprocess
import sys

import pytest

import dplasso


def test_importing_the_package_imports_nothing_heavy():
    script = """
import sys
import dplasso
heavy = {"sklearn", "numba", "matplotlib", "dp_accounting", "scipy", "numpy", "rich", "typer"}
print(*sorted(heavy & set(sys.modules)))
assert "DPLassoClassifier" in dir(dplasso)
dplasso.DPLassoClassifier
assert "sklearn" in sys.modules
assert "matplotlib" not in sys.modules
assert "dp_accounting" not in sys.modules
"""
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'dplasso' has no attribute 'nothing'"):
        dplasso.nothing  # noqa: B018
    for name in dplasso.__all__:
        assert getattr(dplasso, name) is not None
