"""Steps before a private model that learn nothing from the records (docs/howto-pipelines.md).

The promise is about the last step alone. What a step before it learns, a mean, a vocabulary or a
choice of columns, leaves with the pipeline and is covered by nothing; and where a row depends on
other records, so does what a fit adds of it. So a step has to be one of a list, or declared.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from dplasso.errors import DataError, is_ours, of_a_stranger
from dplasso.fit.records import store_of
from dplasso.matrix.compressed import checked, without_duplicates

_Declared = TypeVar("_Declared")
# So many rows are transformed once more, each by itself.
_COMPARED = 8
_RANGES = "declare public ranges or bins instead (PublicEncoder), or scale rows with Normalizer"
_COLUMNS = "leave all columns to the fit and give it max_weights=k"
# What to use in place of some that learn.
_INSTEAD = {
    **dict.fromkeys(("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"), _RANGES),
    **dict.fromkeys(("QuantileTransformer", "PowerTransformer", "KBinsDiscretizer"), _RANGES),
    **dict.fromkeys(("SelectKBest", "SelectPercentile", "VarianceThreshold"), _COLUMNS),
    **dict.fromkeys(("SelectFromModel", "PCA", "TruncatedSVD"), _COLUMNS),
    "DictVectorizer": "hash instead (FeatureHasher)",
}


def _nothing(step: Any) -> str:  # noqa: ARG001
    return ""


def _vocabulary(step: Any) -> str:
    if step.vocabulary is None:
        return "give it a public vocabulary=, or hash the words (HashingVectorizer)"
    return _no_idf(step) if hasattr(step, "use_idf") else ""


def _no_idf(step: Any) -> str:
    return "give it use_idf=False" if step.use_idf else ""


def _categories(step: Any) -> str:
    if isinstance(step.categories, str):
        return "give it the public categories=, or use PublicEncoder"
    if step.min_frequency is not None or step.max_categories is not None:
        return "leave out min_frequency and max_categories, which count the records"
    return ""


def _constant(step: Any) -> str:
    if step.strategy == "constant" and step.keep_empty_features and not step.add_indicator:
        return ""
    return 'give it strategy="constant", keep_empty_features=True and no indicator'


# Types of steps by the place that documents them: what to change so that they learn nothing.
_KNOWN: dict[str, Callable[[Any], str]] = {
    "dplasso.encoding.encoder.PublicEncoder": _nothing,
    "dplasso.estimators.load.FittedAnew": _nothing,
    "sklearn.compose.ColumnTransformer": _nothing,
    "sklearn.feature_extraction.FeatureHasher": _nothing,
    "sklearn.feature_extraction.text.CountVectorizer": _vocabulary,
    "sklearn.feature_extraction.text.HashingVectorizer": _nothing,
    "sklearn.feature_extraction.text.TfidfTransformer": _no_idf,
    "sklearn.feature_extraction.text.TfidfVectorizer": _vocabulary,
    "sklearn.impute.SimpleImputer": _constant,
    "sklearn.pipeline.FeatureUnion": _nothing,
    "sklearn.pipeline.Pipeline": _nothing,
    "sklearn.preprocessing.Binarizer": _nothing,
    "sklearn.preprocessing.FunctionTransformer": _nothing,
    "sklearn.preprocessing.Normalizer": _nothing,
    "sklearn.preprocessing.OneHotEncoder": _categories,
    "sklearn.preprocessing.OrdinalEncoder": _categories,
    "sklearn.preprocessing.PolynomialFeatures": _nothing,
}
# What users have declared, by module and name.
_declared: dict[str, Any] = {}


def record_wise(declared: _Declared) -> _Declared:
    """Declare that a transformer, or a function, treats every record by itself and learns nothing.

    Pipelines with such a step can then be searched, scored, saved and loaded. Whoever declares it
    promises that it keeps nothing of the records and that no row depends on others, to the last
    bit. Otherwise the whole is not private.

    Parameters
    ----------
    declared : class or function
        A transformer's class, or a function given to `FunctionTransformer`. May be used as a
        decorator. Whoever loads a model file with it declares it before. Subclasses are declared
        separately.

    Returns
    -------
    class or function
        The same.

    Raises
    ------
    TypeError
        If it is neither, or has no name that a file could hold.

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
            f"record_wise takes the class of a transformer, or a function with a name, got "
            f"{declared!r}"
        )
    _declared[f"{getattr(declared, '__module__', '')}:{name}"] = declared
    return declared


def name_of(thing: Any) -> str | None:
    """Return by what name a model file holds a type or function; None if it cannot."""
    if isinstance(thing, np.ufunc):
        # Of one array, entry by entry.
        plain = thing.nin == thing.nout == 1 and getattr(np, thing.__name__, None) is thing
        return f"numpy:{thing.__name__}" if plain else None
    mine = f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', '')}"
    if _declared.get(mine) is thing:
        return mine
    name = getattr(thing, "__name__", "")
    same = (known for known in _KNOWN if known.rpartition(".")[2] == name)
    return next((known for known in same if _known(known) is thing), None)


def named(name: str) -> Any:
    """Return the type or function of that name; KeyError unless it is known or declared."""
    module, _, ufunc = name.partition(":")
    if module == "numpy" and name not in _declared:
        found = getattr(np, ufunc, None)
        if not isinstance(found, np.ufunc) or name_of(found) != name:
            raise KeyError(name)
        return found
    return _known(name) if name in _KNOWN else _declared[name]


def _known(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def chosen(model: Any) -> Any:
    """Return what a `PrivateSearch` has chosen, or the model itself."""
    if hasattr(model, "grid") and hasattr(model, "held_out"):
        check_is_fitted(model, "best_estimator_")
        return model.best_estimator_
    return model


def split(model: Any) -> tuple[Pipeline, Any] | None:
    """Return the steps before the last of a pipeline, and the last; None for anything else."""
    if not isinstance(model, Pipeline):
        return None
    return model[:-1], model.steps[-1][1]


def check_record_wise(steps: Pipeline) -> None:
    """Refuse steps that learn from the records, or may: ValueError says what to use instead.

    Steps inside of steps are looked at too.
    """
    for name, step in every_step(steps):
        if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
            continue
        for part, _, columns in getattr(step, "transformers", ()):
            if callable(columns):
                raise ValueError(
                    f"{part!r} of ColumnTransformer chooses its columns by looking at the records; "
                    "the privacy guarantee does not cover that: name the columns"
                )
        kind, held = type(step).__name__, name_of(type(step))
        rule = None if held is None else _KNOWN.get(held, _nothing)
        change = _INSTEAD.get(kind, "") if rule is None else rule(step)
        if held in _KNOWN and getattr(step, "memory", None) is not None:
            raise ValueError(f"step {name!r} keeps records on the disk: leave out memory=")
        if held in _KNOWN and getattr(step, "input", "content") != "content":
            raise ValueError(f"step {name!r} reads files that records name: give it the texts")
        if change:
            raise ValueError(
                f"step {name!r} ({kind}) learns from the records when it is fitted; that would "
                f"leave with the pipeline, and no promise covers it: {change}"
            )
        if rule is None:
            raise ValueError(
                f"step {name!r} ({kind}) is not known to treat each record separately. What a "
                "step learns leaves with the pipeline, and the guarantee does not cover it. If it "
                f"learns nothing, declare it with dplasso.record_wise({kind})"
            )


def record_wise_parts(model: Any) -> tuple[Pipeline | None, Any]:
    """Return the steps before a model, None if there are none, and the model itself.

    A search, or a search as the last step, is replaced by what it has chosen. ValueError as
    `check_record_wise`.
    """
    parts = split(chosen(model))
    if parts is None:
        return None, chosen(model)
    steps, last = parts
    check_record_wise(steps)
    return steps if len(steps) else None, chosen(last)


def every_step(step: Any) -> Iterator[tuple[str, Any]]:
    """Return the steps of a pipeline, a union or a transformer of columns, and those inside."""
    inside = []
    if hasattr(step, "steps"):
        inside = step.steps
    elif hasattr(step, "transformer_list"):
        inside = step.transformer_list
    elif hasattr(step, "transformers"):
        inside = [(name, one) for name, one, _ in step.transformers]
        inside.append(("remainder", step.remainder))
    elif hasattr(step, "step"):
        inside = [(type(step.step).__name__, step.step)]
    for name, one in inside:
        yield name, one
        yield from every_step(one)


def rows_of(steps: Pipeline, X: Any, *, fit: bool = False) -> tuple[Pipeline, Any]:
    """Return the steps, if asked fitted anew, and the rows that they make of X.

    A few rows are made once more, each by itself: where one comes out otherwise, it depends on
    other records, which DataError says. Messages of steps that are not ours quote no record.
    """
    if len(steps) and store_of(X) is not None:
        raise DataError(
            "the rows of a store were made when it was written: give the last step of the pipeline "
            "alone"
        )
    if fit:
        steps = clone(steps)
    found = without_duplicates(X) if len(steps) else checked(X)
    alone = _first(found)
    for name, step in steps.steps:
        if step is None or isinstance(step, str):
            continue
        with of_a_stranger(step):
            if fit:
                step.fit(found)
            found, alone = step.transform(found), [step.transform(row) for row in alone]
        if not all(_same(found, i, row) for i, row in enumerate(alone)):
            raise DataError(
                f"step {name!r} ({type(step).__name__}) makes other rows of single records "
                "than of all together; a row must depend on its own record alone"
            )
    return steps, found


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the model that a fitted pipeline ends in, and the rows that its steps make of X.

    Anything else, and its rows, are returned as they are. Steps before a model of another package
    may have learnt: what that cost is another matter.
    """
    found = chosen(model)
    parts = split(found)
    if parts is None:
        return model, X
    steps, last = parts
    if is_ours(chosen(last)):
        check_record_wise(steps)
    return last, rows_of(steps, X)[1]


def _first(X: Any) -> list[Any]:
    """Return a few rows, fewer than there are, each by itself; none where that cannot be."""
    try:
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        count = min(_COMPARED, n_rows // 2)
        return [_safe_indexing(X, np.array([i])) for i in range(count)]
    except Exception:
        # Rows of no known kind; the steps say what is wrong with them.
        return []


def _same(all_rows: Any, i: int, alone: Any) -> bool:
    both = _safe_indexing(all_rows, np.array([i])), alone
    one, other = (np.asarray(getattr(rows, "toarray", lambda r=rows: r)()) for rows in both)
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "fiub" and other.dtype.kind in "fiub":
        # Sums in another order may differ in their last digits.
        close = 1e-6 * float(np.max(np.abs(np.nan_to_num(one)), initial=0.0))
        return bool(np.allclose(one, other, rtol=1e-6, atol=close, equal_nan=True))
    return bool(np.array_equal(one.astype(str), other.astype(str)))
