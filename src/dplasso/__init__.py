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
    from dplasso.errors import BudgetError as BudgetError, DataError as DataError
    from dplasso.errors import LedgerError as LedgerError, LedgerWarning as LedgerWarning
    from dplasso.errors import ModelFileError as ModelFileError, StoreError as StoreError
    from dplasso.errors import NoiseWarning as NoiseWarning
    from dplasso.errors import PrivacyLeakWarning as PrivacyLeakWarning
    from dplasso.estimators.linear_models import DPLasso as DPLasso
    from dplasso.estimators.linear_models import DPLassoClassifier as DPLassoClassifier
    from dplasso.estimators.linear_models import DPLinearRegression as DPLinearRegression
    from dplasso.estimators.linear_models import DPLogisticRegression as DPLogisticRegression
    from dplasso.estimators.load import load as load
    from dplasso.fit.cost import privacy_cost as privacy_cost
    from dplasso.fit.cost import weakest_association as weakest_association
    from dplasso.privacy.statement import PrivacyStatement as PrivacyStatement
    from dplasso.tuning.scores import PrivateScore as PrivateScore, private_score as private_score
    from dplasso.tuning.search import PrivateSearch as PrivateSearch
    # isort: on

__version__ = "0.3.0"

_HOMES = {
    "DPLasso": "estimators.linear_models",
    "DPLassoClassifier": "estimators.linear_models",
    "DPLinearRegression": "estimators.linear_models",
    "DPLogisticRegression": "estimators.linear_models",
    "PrivacyStatement": "privacy.statement",
    "PrivateScore": "tuning.scores",
    "PrivateSearch": "tuning.search",
    "PublicEncoder": "encoding.encoder",
    "load": "estimators.load",
    "open_store": "data.store.reader",
    "privacy_cost": "fit.cost",
    "private_score": "tuning.scores",
    "weakest_association": "fit.cost",
}
_HOMES |= dict.fromkeys(("BudgetError", "DataError", "LedgerError", "LedgerWarning"), "errors")
_HOMES |= dict.fromkeys(("ModelFileError", "NoiseWarning", "StoreError"), "errors")
_HOMES |= dict.fromkeys(("PrivacyLeakWarning",), "errors")
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
