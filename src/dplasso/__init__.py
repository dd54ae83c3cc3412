"""Differentially private linear models for sparse, high-dimensional data.

Names are imported when they are first used, so that ``import dplasso`` costs nothing.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dplasso.runtime.compilation import drop_stale_kernels

if TYPE_CHECKING:
    # isort: off
    from dplasso.data.store import open_store as open_store
    from dplasso.encoding.encoder import PublicEncoder as PublicEncoder
    from dplasso.errors import BudgetError as BudgetError, DataError as DataError
    from dplasso.errors import LedgerError as LedgerError, LedgerWarning as LedgerWarning
    from dplasso.errors import ModelFileError as ModelFileError, StoreError as StoreError
    from dplasso.errors import NoiseWarning as NoiseWarning
    from dplasso.errors import PrivacyLeakWarning as PrivacyLeakWarning
    from dplasso.errors import WeakPrivacyWarning as WeakPrivacyWarning
    from dplasso.estimators.classifiers import DPLassoClassifier as DPLassoClassifier
    from dplasso.estimators.classifiers import DPLogisticRegression as DPLogisticRegression
    from dplasso.estimators.frank_wolfe_classifier import (
        DPFrankWolfeClassifier as DPFrankWolfeClassifier,
    )
    from dplasso.estimators.regressors import DPLasso as DPLasso
    from dplasso.estimators.regressors import DPLinearRegression as DPLinearRegression
    from dplasso.estimators.load import load as load, save as save, top_features as top_features
    from dplasso.estimators.export import to_onnx as to_onnx
    from dplasso.estimators.record_wise import record_wise as record_wise
    from dplasso.estimators.cost import privacy_cost as privacy_cost
    from dplasso.estimators.cost import weakest_association as weakest_association
    from dplasso.estimators.stores import write_store as write_store
    from dplasso.ledger.charging import Ledger as Ledger
    from dplasso.matrix.geometry import Geometry as Geometry
    from dplasso.privacy.wording import Caution as Caution
    from dplasso.privacy.statement import PrivacyStatement as PrivacyStatement
    from dplasso.report.displays import CurvesDisplay as CurvesDisplay
    from dplasso.report.displays import WeightsDisplay as WeightsDisplay
    from dplasso.tuning.comparison import PrivateComparison as PrivateComparison
    from dplasso.tuning.comparison import private_comparison as private_comparison
    from dplasso.tuning.quantiles import private_quantiles as private_quantiles
    from dplasso.tuning.scores import PrivateScore as PrivateScore, private_score as private_score
    from dplasso.tuning.search import PrivateSearch as PrivateSearch
    # isort: on

__version__ = "0.3.0"

_HOMES = {
    name: home
    for home, names in {
        "data.store": "open_store",
        "encoding.encoder": "PublicEncoder",
        "errors": "BudgetError DataError LedgerError LedgerWarning ModelFileError NoiseWarning "
        "PrivacyLeakWarning StoreError WeakPrivacyWarning",
        "estimators.classifiers": "DPLassoClassifier DPLogisticRegression",
        "estimators.cost": "privacy_cost weakest_association",
        "estimators.export": "to_onnx",
        "estimators.frank_wolfe_classifier": "DPFrankWolfeClassifier",
        "estimators.load": "load save top_features",
        "estimators.record_wise": "record_wise",
        "estimators.regressors": "DPLasso DPLinearRegression",
        "estimators.stores": "write_store",
        "ledger.charging": "Ledger",
        "matrix.geometry": "Geometry",
        "privacy.statement": "PrivacyStatement",
        "privacy.wording": "Caution",
        "report.displays": "CurvesDisplay WeightsDisplay",
        "tuning.comparison": "PrivateComparison private_comparison",
        "tuning.quantiles": "private_quantiles",
        "tuning.scores": "PrivateScore private_score",
        "tuning.search": "PrivateSearch",
    }.items()
    for name in names.split()
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
