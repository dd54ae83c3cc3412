"""What is needed for what: an import nothing, a fit five packages, all else says what it lacks."""

import sys
import tomllib
from pathlib import Path

import pytest

import dplasso
from cli.conftest import refused, run_command
from dplasso.errors import EXTRAS
from processes import python

NOT_NEEDED = "filelock fsspec matplotlib pandas pyarrow ray requests rich typer"
SCRIPT = """
import sys
for name in sys.argv[1].split():
    sys.modules[name] = None
import dplasso
heavy = {"sklearn", "numba", "dp_accounting", "scipy", "numpy"}
assert not heavy & set(sys.modules)
assert "DPLassoClassifier" in dir(dplasso)
dplasso.DPLassoClassifier
assert "sklearn" in sys.modules
assert "dp_accounting" not in sys.modules
import numpy as np
X = np.eye(12)[np.arange(240) % 12]
y = np.arange(240) % 12 < 6
for kind in (dplasso.DPLassoClassifier, dplasso.DPLogisticRegression):
    fitted = kind(epsilon=1.0, delta=1e-6, classes=[False, True]).fit(X, y)
    fitted.predict_proba(X)
    fitted.save(sys.argv[2])
    assert dplasso.load(sys.argv[2]).privacy_.is_private
assert not any(name.startswith("dplasso.cluster") for name in sys.modules)
"""


def test_an_import_needs_nothing_and_fits_need_five_packages(tmp_path):
    """NumPy, SciPy, numba, scikit-learn and dp-accounting: warnings are errors, as are others."""
    python("-W", "error", "-c", SCRIPT, NOT_NEEDED, tmp_path / "model.npz")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'dplasso' has no attribute 'nothing'"):
        dplasso.nothing  # noqa: B018
    for name in dplasso.__all__:
        assert getattr(dplasso, name) is not None


def test_what_lacks_a_package_says_which_and_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    place = ["s3://bucket/rows.store", "--cluster", "threads"]
    words = "Reading object storage needs fsspec, which is not installed: pip install 'dplasso[sto"
    refused(run_command("fit", *place, "--epsilon", "1"), words)


def test_every_extra_that_a_sentence_names_brings_its_package():
    project = Path(__file__).parent.parent / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    for module, extra in EXTRAS.items():
        assert [one for one in extras[extra] if one.startswith(module)]
        assert extra in extras["all"][0]
