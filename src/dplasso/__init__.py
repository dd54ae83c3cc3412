"""Differentially private linear models for sparse, high-dimensional data.

Names are imported when they are first used, so that ``import dplasso`` costs nothing.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dplasso.runtime.kernel_cache import drop_stale_kernels

if TYPE_CHECKING:
    # isort: off
    from dplasso.data.store.reader import open_store as open_store
    from dplasso.encoding.encoder import PublicEncoder as PublicEncoder
    from dplasso.errors import (
        BudgetError as BudgetError,
        DataError as DataError,
        LedgerError as LedgerError,
        LedgerWarning as LedgerWarning,
        ModelFileError as ModelFileError,
        PrivacyLeakWarning as PrivacyLeakWarning,
        StoreError as StoreError,
    )
    from dplasso.estimators.linear_models import (
        DPLasso as DPLasso,
        DPLassoClassifier as DPLassoClassifier,
        DPLinearRegression as DPLinearRegression,
        DPLogisticRegression as DPLogisticRegression,
    )
    from dplasso.estimators.load import load as load
    from dplasso.fit.cost import (
        privacy_cost as privacy_cost,
        weakest_association as weakest_association,
    )
    from dplasso.privacy.statement import PrivacyStatement as PrivacyStatement
    from dplasso.tuning.scores import PrivateScore as PrivateScore, private_score as private_score
    from dplasso.tuning.search import PrivateSearch as PrivateSearch
    # isort: on

__version__ = "0.2.0"

_HOMES = {
    name: module
    for module, names in {
        "data.store.reader": ("open_store",),
        "encoding.encoder": ("PublicEncoder",),
        "errors": (
            *("BudgetError", "DataError", "LedgerError", "LedgerWarning", "ModelFileError"),
            *("PrivacyLeakWarning", "StoreError"),
        ),
        "estimators.linear_models": (
            *("DPLasso", "DPLassoClassifier", "DPLinearRegression", "DPLogisticRegression"),
        ),
        "estimators.load": ("load",),
        "fit.cost": ("privacy_cost", "weakest_association"),
        "privacy.statement": ("PrivacyStatement",),
        "tuning.scores": ("PrivateScore", "private_score"),
        "tuning.search": ("PrivateSearch",),
    }.items()
    for name in names
}
__all__ = sorted(["__version__", *_HOMES])

drop_stale_kernels(Path(__file__).parent)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dplasso' has no attribute {name!r}")
    value = getattr(import_module(f"dplasso.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
