"""What imported under version 0.1.0 still does, and costs nothing until then."""

import importlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dplasso import _moved

OLD = sorted(_moved.MODULES)


@pytest.mark.parametrize("old", OLD)
def test_an_old_module_holds_what_the_new_one_does(old):
    found = importlib.import_module(f"dplasso.{old}")
    new = importlib.import_module(f"dplasso.{_moved.MODULES[old]}")
    names = [name for name in vars(new) if not name.startswith("__")]
    assert names
    for name in names:
        assert getattr(found, name) is getattr(new, name)
    assert dir(found) == sorted(dir(new))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = found.no_such_name


def test_modules_inside_a_package_that_moved():
    from dplasso.privacy.audit import audit_canary
    from dplasso.privacy.audit import claims as old_claims
    from dplasso.privacy.audit.suite import STEP_RUNS

    from dplasso.audit import claims, suite

    assert old_claims.Data is claims.Data
    assert STEP_RUNS is suite.STEP_RUNS
    assert callable(audit_canary)


def test_old_names_of_functions():
    from dplasso.data.twins import make_twin, twin_source

    from dplasso.datasets.synthetic.generate import make_synthetic, synthetic_source

    assert (make_twin, twin_source) == (make_synthetic, synthetic_source)


def test_what_never_was_is_not_found():
    for name in ("dplasso.data.none", "dplasso.privacy.audit.none", "dplasso.estimators2"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)


def test_nothing_is_imported_before_it_is_asked_for():
    code = "import sys, dplasso; print([n for n in sys.modules if n.startswith('dplasso')])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert set(eval(run.stdout)) == {
        "dplasso",
        "dplasso._moved",
        "dplasso.errors",
        "dplasso.runtime",
        "dplasso.runtime.extras",
        "dplasso.runtime.kernel_cache",
    }


def test_a_pickle_of_version_0_1_0():
    content = Path(__file__).with_name("estimator-0.1.0.pickle").read_bytes()
    model = pickle.loads(content)
    assert model.predict(np.eye(6, dtype=np.float32)).shape == (6,)
    assert pickle.loads(pickle.dumps(model)).transcript_ == model.transcript_
