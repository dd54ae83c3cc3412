"""Predict each row by that row alone, to the last bit.

BLAS chooses the order of a sum by the number of rows and the place of a row among them, so adding a
row can change the last bit of other rows' margins, and the classes of all that are at a threshold.

- *Models of this package* compute margins with a kernel that sums a row's entries in stored order.
- *Decision trees and forests* predict all rows in one call, because they only compare entries with
  thresholds. Joblib runs sequentially, because threads would sum trees as they finish.
- *Any other model* predicts one row per call.

The steps of a pipeline transform all rows in one call if each of them treats each entry or each row
separately (`_BY_ENTRY`). Otherwise the whole pipeline predicts one row per call.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from dplasso.errors import DataError, is_ours, of_a_stranger
from dplasso.estimators.record_wise import chosen, every_step, in_double, split
from dplasso.fit.records import LocalRecords

# Models of scikit-learn that compare entries; a subclass of another package may predict otherwise.
_COMPARING = {
    f"{kind}{target}"
    for kind in ("DecisionTree", "Dummy", "ExtraTree", "ExtraTrees", "RandomForest")
    for target in ("Classifier", "Regressor")
}
# Steps of scikit-learn that process each entry separately, or each sparse row in its own order.
_BY_ENTRY = {
    *("CountVectorizer", "DictVectorizer", "HashingVectorizer"),
    *("TfidfTransformer", "TfidfVectorizer", "OneHotEncoder", "OrdinalEncoder", "SimpleImputer"),
    *("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler", "Binarizer"),
    *("SelectKBest", "SelectPercentile", "VarianceThreshold"),
    *("ColumnTransformer", "FeatureUnion", "Pipeline"),
}


def isolated(model: Any) -> Any:
    """Return a model with the same predictions, each of which depends on its own row only."""
    model = chosen(model)
    if is_ours(model):
        return model
    return _Sequential(model) if _compares(model) else _OneByOne(model)


def isolate(model: Any, X: Any, rows: LocalRecords) -> tuple[Any, LocalRecords]:
    """Return a model and rows that give a pipeline's predictions for X, each row separately.

    `rows`: the output of the steps before the last, whose matrix row numbers may replace.
    """
    model = chosen(model)
    steps, last = split(model)
    if steps is None:
        return model, rows
    last, at_once = chosen(last), all(_by_entry(step) for _, step in every_step(steps))
    if is_ours(last) or (_compares(last) and at_once):
        return last, rows
    return _OneByOne(model, in_double(X, model)), replace(
        rows, X=np.arange(len(rows.y), dtype=np.float64)[:, None]
    )


def _compares(model: Any) -> bool:
    # A dummy that guesses draws for all rows in their order.
    guesses = getattr(model, "strategy", None) in ("stratified", "uniform")
    return _is_sklearn(model, _COMPARING) and not guesses


def _is_sklearn(step: Any, names: set[str]) -> bool:
    return type(step).__module__.startswith("sklearn.") and type(step).__name__ in names


def _by_entry(step: Any) -> bool:
    takes_entries = _is_sklearn(step, _BY_ENTRY) or is_ours(step)
    return takes_entries or step is None or isinstance(step, str)


@dataclass(frozen=True)
class _Sequential:
    """Predictions of a third-party model, without the messages that may quote a row."""

    model: Any

    def predict(self, X: Any) -> NDArray[Any]:
        return self._predicted("predict", X)

    def predict_proba(self, X: Any) -> NDArray[Any]:
        return self._predicted("predict_proba", X)

    def _predicted(self, method: str, X: Any) -> NDArray[Any]:
        if not hasattr(self.model, method):
            name = type(self.model).__name__
            raise DataError(f"{name} has no {method}; pass another `metric`, such as 'accuracy'")
        with of_a_stranger(self.model), parallel_config(backend="sequential"):
            return self._of(method, X)

    def _of(self, method: str, X: Any) -> NDArray[Any]:
        return np.asarray(getattr(self.model, method)(X))


@dataclass(frozen=True)
class _OneByOne(_Sequential):
    """Predictions of one row per call; `records` holds the rows if the matrix holds numbers."""

    records: Any = None

    def _of(self, method: str, X: Any) -> NDArray[Any]:
        predict, predictions = getattr(self.model, method), []
        # Answers of several types would be converted to a common one, in which labels change.
        names = method == "predict" and getattr(self.model, "classes_", None) is not None
        row = _reader(X) if self.records is None else self._record
        numbers = range(X.shape[0]) if self.records is None else X[:, 0].astype(np.intp).tolist()
        for number in numbers:
            # Copied, because a prediction may be a view of the row, whose memory is reused.
            predictions.append(np.array(predict(row(number)), object if names else np.float64))
            if len(predictions[-1]) != 1:
                raise DataError(
                    f"the model returned {len(predictions[-1]):,} predictions for 1 row"
                )
        return np.concatenate(predictions)

    def _record(self, number: int) -> Any:
        return _safe_indexing(self.records, np.array([number]))


@dataclass(frozen=True)
class SomeRows(_Sequential):
    """A model that predicts all rows of a store, but returns only those that are scored."""

    within: NDArray[np.bool_]

    def _predicted(self, method: str, X: Any) -> NDArray[Any]:
        predictions = self._of(method, X)
        if len(predictions) != self.within.size:
            raise DataError(
                f"the model returned {len(predictions):,} predictions for {self.within.size:,} rows"
            )
        return predictions[self.within]


def _reader(X: Any) -> Callable[[int], Any]:
    """Return a function that returns a single row of a matrix, shape (1, D), in double precision.

    The precision of the matrix may depend on other rows. Dense rows are always at the same address,
    because BLAS may depend on the alignment of memory.
    """
    if not sp.issparse(X):
        only = np.empty((1, X.shape[1]))

        def dense(number: int) -> Any:
            only[0] = X[number]
            return only

        return dense
    matrix: Any = X
    rows, n_columns = matrix.tocsr(), matrix.shape[1]
    # The type that scipy would choose for a single row, whatever the size of the matrix.
    narrow = np.int32 if n_columns <= np.iinfo(np.int32).max else np.int64

    def sparse(number: int) -> Any:
        entries = slice(*rows.indptr[number : number + 2])
        columns, values = (
            rows.indices[entries].astype(narrow),
            rows.data[entries].astype(np.float64),
        )
        ends = np.array([0, values.size], dtype=narrow)
        return type(rows)((values, columns, ends), shape=(1, n_columns))

    return sparse
