"""Steps before a private model that learn nothing from the records (docs/howto-pipelines.md).

The guarantee covers only the last step, so every other step must be a known one, or declared.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from dplasso.data.store import Store
from dplasso.encoding.encoder import PublicEncoder
from dplasso.errors import DataError, is_ours, of_a_stranger
from dplasso.fit.records import kind_of
from dplasso.matrix.compressed import checked, without_duplicates

_Declared = TypeVar("_Declared")
# Number of rows that are transformed again, one by one.
_COMPARED = 8
_RANGES = (
    "leave it out, because a fit centres and scales columns itself, or declare public ranges or "
    "bins (PublicEncoder)"
)
_COLUMNS = "leave all columns to the fit and give it max_weights=k"
# Replacements for some steps that learn.
_INSTEAD = {
    **dict.fromkeys(("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"), _RANGES),
    **dict.fromkeys(("QuantileTransformer", "PowerTransformer", "KBinsDiscretizer"), _RANGES),
    **dict.fromkeys(("SelectKBest", "SelectPercentile", "VarianceThreshold"), _COLUMNS),
    **dict.fromkeys(("SelectFromModel", "PCA", "TruncatedSVD"), _COLUMNS),
    "DictVectorizer": 'hash words such as "key=value" instead (FeatureHasher(input_type="string"))',
}


def _vocabulary(step: Any) -> str:
    if step.vocabulary is None:
        return "set a public vocabulary=, or hash the words (HashingVectorizer)"
    return _no_idf(step) if hasattr(step, "use_idf") else ""


def _no_idf(step: Any) -> str:
    return "set use_idf=False" if step.use_idf else ""


def _categories(step: Any) -> str:
    if isinstance(step.categories, str):
        return "set public categories=, or use PublicEncoder"
    if step.min_frequency is not None or step.max_categories is not None:
        return "leave out min_frequency and max_categories, which count the records"
    return ""


def _constant(step: Any) -> str:
    if step.strategy == "constant" and step.keep_empty_features and not step.add_indicator:
        return ""
    return 'set strategy="constant", keep_empty_features=True and no indicator'


# Known types of steps. Each function returns what to change so that a step learns nothing.
_KNOWN: dict[str, Callable[[Any], str] | None] = {
    "dplasso.encoding.encoder.PublicEncoder": None,
    "dplasso.estimators.load.FittedAnew": None,
    "sklearn.compose.ColumnTransformer": None,
    "sklearn.feature_extraction.FeatureHasher": None,
    "sklearn.feature_extraction.text.CountVectorizer": _vocabulary,
    "sklearn.feature_extraction.text.HashingVectorizer": None,
    "sklearn.feature_extraction.text.TfidfTransformer": _no_idf,
    "sklearn.feature_extraction.text.TfidfVectorizer": _vocabulary,
    "sklearn.impute.SimpleImputer": _constant,
    "sklearn.pipeline.FeatureUnion": None,
    "sklearn.pipeline.Pipeline": None,
    "sklearn.preprocessing.Binarizer": None,
    "sklearn.preprocessing.FunctionTransformer": None,
    "sklearn.preprocessing.Normalizer": None,
    "sklearn.preprocessing.OneHotEncoder": _categories,
    "sklearn.preprocessing.OrdinalEncoder": _categories,
    "sklearn.preprocessing.PolynomialFeatures": None,
}
# Types and functions that users have declared, by module and name.
_declared: dict[str, Any] = {}


def record_wise(declared: _Declared) -> _Declared:
    """Declare that a transformer or function treats every record separately and learns nothing.

    Pipelines with such a step can then be scored, saved and loaded. By declaring it you
    promise that it stores nothing from the records, and that each row depends on its own record
    only, to the last bit. Otherwise the pipeline is not private.

    Parameters
    ----------
    declared : class or function
        A transformer's class, or a function for `FunctionTransformer`. Can be used as a decorator.
        Declare it before loading a model file that uses it. Declare subclasses separately.

    Returns
    -------
    class or function
        The argument itself.

    Raises
    ------
    TypeError
        If it is neither, or has no name that a file can store.

    Examples
    --------
    >>> import numpy as np
    >>> from dplasso import record_wise
    >>> @record_wise
    ... def clipped(X):
    ...     return np.clip(X, 0, 10)
    """
    name = getattr(declared, "__qualname__", "<lambda>")
    is_class = isinstance(declared, type)
    if "<lambda>" in name or (is_class and not hasattr(declared, "transform")):
        raise TypeError(
            "record_wise needs the class of a transformer, or a function with a name, got "
            f"{declared!r}"
        )
    _declared[f"{getattr(declared, '__module__', '')}:{name}"] = declared
    return declared


def name_of(thing: Any) -> str | None:
    """Return the name of a type or function in a model file; None if it cannot be stored."""
    if isinstance(thing, np.ufunc):
        # Only functions of one array treat each entry separately.
        plain = thing.nin == thing.nout == 1 and getattr(np, thing.__name__, None) is thing
        return f"numpy:{thing.__name__}" if plain else None
    mine = f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', '')}"
    if _declared.get(mine) is thing:
        return mine
    name = getattr(thing, "__name__", "")
    same = (path for path in _KNOWN if path.rpartition(".")[2] == name)
    return next((path for path in same if _known(path) is thing), None)


def named(held: Any) -> Any:
    """Return the type or function that a file names; ValueError unless it is known or declared."""
    # A damaged file may hold anything here.
    name = str(held)
    if name in _declared:
        return _declared[name]
    module, _, ufunc = name.partition(":")
    thing = getattr(np, ufunc, None) if module == "numpy" else None
    if name in _KNOWN:
        thing = _known(name)
    elif not isinstance(thing, np.ufunc) or name_of(thing) != name:
        raise ValueError(
            f"its pipeline needs {name}, which is not declared: import it, and declare it with "
            "dplasso.record_wise before loading"
        )
    return thing


def _known(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def chosen(model: Any) -> Any:
    """Return the best estimator of a `PrivateSearch`, or the model itself."""
    if hasattr(model, "grid") and hasattr(model, "held_out"):
        check_is_fitted(model, "best_estimator_")
        return model.best_estimator_
    return model


def split(model: Any) -> tuple[Pipeline | None, Any]:
    """Return the other steps of a pipeline, and the last one; None and any other model."""
    return (model[:-1], model.steps[-1][1]) if isinstance(model, Pipeline) else (None, model)


def check_record_wise(steps: Pipeline) -> None:
    """Raise ValueError for steps, also nested ones, that learn or may learn from the records."""
    last = steps.steps[-1][1] if len(steps) else None
    # A model has the same margins for sparse and dense rows.
    exempt = getattr(last, "step", last)
    for name, step in every_step(steps):
        if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
            continue
        for part, _, columns in getattr(step, "transformers", ()):
            if callable(columns):
                raise ValueError(
                    f"{part!r} of ColumnTransformer chooses its columns from the records, which "
                    "the privacy guarantee does not cover: name the columns"
                )
        kind, held = type(step).__name__, name_of(type(step))
        rule = None if held is None else _KNOWN.get(held)
        change = _INSTEAD.get(kind, "") if held is None else rule(step) if rule else ""
        if held in _KNOWN and getattr(step, "memory", None) is not None:
            raise ValueError(f"step {name!r} caches records on the disk: leave out memory=")
        if held in _KNOWN and getattr(step, "input", "content") != "content":
            raise ValueError(f"step {name!r} reads files named in the records: pass it the texts")
        if held in _KNOWN and getattr(step, "input_type", "string") != "string":
            raise ValueError(
                f"step {name!r} ({kind}) adds up the numbers of a record in an order that other "
                'records change: set input_type="string" and pass it words such as "key=value", or '
                "encode numbers with PublicEncoder"
            )
        if held in _KNOWN and step is not exempt and not _has_one_form(step):
            raise ValueError(
                f"step {name!r} ({kind}) makes rows sparse or dense by the density of all records, "
                "and the next step may compute differently. Set sparse_threshold=0 for dense rows. "
                "Set it to 1 if a part is a sparse OneHotEncoder with two or more categories"
            )
        if change:
            raise ValueError(
                f"step {name!r} ({kind}) learns from the records, which the pipeline would reveal "
                f"without any guarantee: {change}"
            )
        if held is None:
            raise ValueError(
                f"step {name!r} ({kind}) is not known to treat each record separately. If a step "
                "learns something, the pipeline reveals it without any guarantee. If this step "
                f"learns nothing, declare it with dplasso.record_wise({kind})"
            )


def _has_one_form(step: Any) -> bool:
    """Return whether a ColumnTransformer always returns sparse rows, or always dense ones.

    With a threshold of 1, rows are dense if all their entries are stored, which one-hot rows of
    several categories never are.
    """
    parts = [part for _, part, _ in getattr(step, "transformers", ())]
    parts = [part.steps[-1][1] if hasattr(part, "steps") else part for part in parts]
    never_full = any(
        name_of(type(part)) == "sklearn.preprocessing.OneHotEncoder"
        and (part.sparse_output and part.drop is None and max(map(len, part.categories)) > 1)
        for part in parts
    )
    return getattr(step, "sparse_threshold", 0) in ((0, 1) if never_full else (0,))


def record_wise_parts(model: Any) -> tuple[Pipeline | None, Any]:
    """Return the steps before a model, or None, and the model itself; of a search, the best."""
    steps, last = split(chosen(model))
    last = chosen(last)
    if steps is not None:
        check_record_wise(steps)
        statement = getattr(last, "privacy_", None)
        for name, step in every_step(steps):
            edges = step.schema_.edges if isinstance(step, PublicEncoder) else None
            if edges and statement and statement.is_private and not statement.find("edges"):
                raise ValueError(
                    f"step {name!r} has edges of bins that were released from records, and the "
                    "statement does not count their cost. Put the encoder right before the model. "
                    "If these were other records, delete `edges` from the schema"
                )
    return steps or None, last


def every_step(step: Any) -> Iterator[tuple[str, Any]]:
    """Yield the steps of a pipeline, FeatureUnion or ColumnTransformer, and all nested steps."""
    inside = []
    if hasattr(step, "steps"):
        inside = step.steps
    elif hasattr(step, "transformer_list"):
        inside = step.transformer_list
    elif hasattr(step, "transformers"):
        inside = [(name, inner) for name, inner, _ in step.transformers]
        inside.append(("remainder", step.remainder))
    elif hasattr(step, "step"):
        inside = [(type(step.step).__name__, step.step)]
    for name, inner in inside:
        yield name, inner
        yield from every_step(inner)


def rows_of(steps: Pipeline, X: Any) -> Any:
    """Return the transformed rows; `DataError` if a few, transformed again one by one, differ."""
    if len(steps) and isinstance(X, Store):
        raise DataError(
            "the rows of a store are encoded already: pass the last step of the pipeline alone"
        )
    made = without_duplicates(X) if len(steps) else checked(X)
    made, alone = in_double(made, steps) if len(steps) else made, _first(made)
    for name, step in steps.steps:
        if step is None or isinstance(step, str):
            continue
        with of_a_stranger(step):
            made, alone = step.transform(made), [step.transform(row) for row in alone]
        if not all(_same(made, i, row) for i, row in enumerate(alone)):
            raise DataError(
                f"step {name!r} ({type(step).__name__}) transforms single records differently "
                "than all together, or numbers of one type differently than of another; a row must "
                "depend on its own record only"
            )
    return made


def in_double(X: Any, steps: Pipeline) -> Any:
    """Return the records of a pipeline with all numbers in double precision.

    One record's fraction or missing value changes the type of a column, and steps compute in it.
    """
    if isinstance(steps.steps[0][1], PublicEncoder):
        # It reads each value alone, and whole numbers from 2^53 on exactly.
        return X
    # scipy adds up duplicates when it converts a matrix, in an order that other records may change.
    X = without_duplicates(X)
    if type(X).__module__.startswith("pyarrow"):
        X = X.to_pandas()
    if isinstance(X, list | tuple):
        return _doubles(X)
    if kind_of(X) in "biuf":
        return X.astype(np.float64)
    if hasattr(X, "with_columns"):
        return X.with_columns(column.cast(float) for column in X if column.dtype.is_numeric())
    if hasattr(X, "iloc") and hasattr(X, "dtypes"):
        return X.astype({name: np.float64 for name in X.columns if kind_of(X[name]) in "iuf"})
    return X


def _doubles(values: Any) -> Any:
    """Return numbers, also those in nested lists, as floats; others unchanged."""
    if isinstance(values, list | tuple | np.ndarray):
        return [_doubles(value) for value in values]
    return float(values) if isinstance(values, Real | np.bool_) else values


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the model at the end of a fitted pipeline, and the rows after the other steps."""
    steps, last = split(chosen(model))
    if steps is None:
        return model, X
    if is_ours(chosen(last)):
        check_record_wise(steps)
    return last, rows_of(steps, X)


def _first(X: Any) -> list[Any]:
    """Return a few rows one by one, at most half of them; empty if rows cannot be selected."""
    try:
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        count = min(_COMPARED, n_rows // 2)
        return [_safe_indexing(X, np.array([i])) for i in range(count)]
    except Exception:
        # The type of the rows is unknown; the steps will raise an error.
        return []


def _same(all_rows: Any, i: int, alone: Any) -> bool:
    both = _safe_indexing(all_rows, np.array([i])), alone
    row, other = (np.asarray(getattr(rows, "toarray", lambda r=rows: r)()) for rows in both)
    if row.shape != other.shape:
        return False
    if row.dtype.kind in "fiub" and other.dtype.kind in "fiub":
        # Sums in another order may differ in their last digits.
        close = 1e-6 * float(np.max(np.abs(np.nan_to_num(row)), initial=0.0))
        return bool(np.allclose(row, other, rtol=1e-6, atol=close, equal_nan=True))
    return bool(np.array_equal(row.astype(str), other.astype(str)))
