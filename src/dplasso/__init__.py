"""Differentially private linear models for sparse, high-dimensional data.

Names are imported when they are first used, so that ``import dplasso`` costs nothing.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dplasso.runtime.kernel_cache import drop_stale_kernels

if TYPE_CHECKING:
    from dplasso.data.store.reader import open_store
    from dplasso.encoding.encoder import PublicEncoder
    from dplasso.errors import (
        BudgetError,
        DataError,
        LedgerError,
        LedgerWarning,
        ModelFileError,
        PrivacyLeakWarning,
        StoreError,
    )
    from dplasso.estimators.lasso import DPLassoClassifier
    from dplasso.estimators.lasso_regression import DPLasso
    from dplasso.estimators.linear import DPLinearRegression
    from dplasso.estimators.load import load
    from dplasso.estimators.logistic import DPLogisticRegression
    from dplasso.fit.cost import privacy_cost, weakest_association
    from dplasso.privacy.statement import PrivacyStatement
    from dplasso.tuning.scores import PrivateScore, private_score
    from dplasso.tuning.search import PrivateSearch

__version__ = "0.2.0"

__all__ = [
    "BudgetError",
    "DPLasso",
    "DPLassoClassifier",
    "DPLinearRegression",
    "DPLogisticRegression",
    "DataError",
    "LedgerError",
    "LedgerWarning",
    "ModelFileError",
    "PrivacyLeakWarning",
    "PrivacyStatement",
    "PrivateScore",
    "PrivateSearch",
    "PublicEncoder",
    "StoreError",
    "__version__",
    "load",
    "open_store",
    "privacy_cost",
    "private_score",
    "weakest_association",
]

_HOMES = {
    "BudgetError": ("dplasso.errors", "BudgetError"),
    "DPLasso": ("dplasso.estimators.lasso_regression", "DPLasso"),
    "DPLassoClassifier": ("dplasso.estimators.lasso", "DPLassoClassifier"),
    "DPLinearRegression": ("dplasso.estimators.linear", "DPLinearRegression"),
    "DPLogisticRegression": ("dplasso.estimators.logistic", "DPLogisticRegression"),
    "DataError": ("dplasso.errors", "DataError"),
    "LedgerError": ("dplasso.errors", "LedgerError"),
    "LedgerWarning": ("dplasso.errors", "LedgerWarning"),
    "ModelFileError": ("dplasso.errors", "ModelFileError"),
    "PrivacyLeakWarning": ("dplasso.errors", "PrivacyLeakWarning"),
    "StoreError": ("dplasso.errors", "StoreError"),
    "PrivacyStatement": ("dplasso.privacy.statement", "PrivacyStatement"),
    "PrivateScore": ("dplasso.tuning.scores", "PrivateScore"),
    "PrivateSearch": ("dplasso.tuning.search", "PrivateSearch"),
    "PublicEncoder": ("dplasso.encoding.encoder", "PublicEncoder"),
    "load": ("dplasso.estimators.load", "load"),
    "open_store": ("dplasso.data.store.reader", "open_store"),
    "privacy_cost": ("dplasso.fit.cost", "privacy_cost"),
    "private_score": ("dplasso.tuning.scores", "private_score"),
    "weakest_association": ("dplasso.fit.cost", "weakest_association"),
}


drop_stale_kernels(Path(__file__).parent)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dplasso' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
