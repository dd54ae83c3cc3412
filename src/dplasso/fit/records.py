"""What a fit sees of the data: records in one process, in memory or in a store.

Rows in partitions (`dplasso.fit.partitioned`) answer the same questions by asking their workers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from dplasso.data.people import number_groups
from dplasso.data.store import NAMES, Store, check_entries
from dplasso.encoding.origin import Origin, origin_of
from dplasso.errors import DataError, in_our_words
from dplasso.fit.task import Task
from dplasso.frank_wolfe.problem import design_of, room_for
from dplasso.frank_wolfe.round_part import RoundRows, RoundSteps
from dplasso.gradient_descent.gradient_rows import GradientRows, build_gradient_rows
from dplasso.losses.targets import Targets, targets_of
from dplasso.matrix.compressed import without_duplicates, working_dtype
from dplasso.matrix.orientations import Design
from dplasso.matrix.starting import StartingModel, StartingRows
from dplasso.privacy.wording import warn_once
from dplasso.runtime.threads import Threads

if TYPE_CHECKING:
    from dplasso.fit.partitioned import ClusterRecords

Records = Union["LocalRecords", "ClusterRecords"]
_NO_TARGETS = targets_of(np.zeros(0))


@dataclass(frozen=True)
class LocalRecords:
    """Records that one process holds, checked.

    `X`, shape (N, D): a matrix or a store. `weights`, shape (N,), in [0, 1]: None for 1 each.
    `within`, shape (N,): which records of a store enter. `by_person`: whether rows of people are
    limited. `every_step`: whether every step is kept before the next.
    """

    X: Any
    y: NDArray[Any]
    feature_names: NDArray[np.object_] | None
    origin: Origin | None = None
    weights: NDArray[np.float64] | None = None
    within: NDArray[np.bool_] | None = None
    by_person: bool = False
    targets: Targets = _NO_TARGETS
    design: Design | None = None
    whole: StartingRows | None = None

    every_step: ClassVar[bool] = False

    @property
    def labels(self) -> NDArray[Any]:
        """Those of the records that enter."""
        return self.y if self.within is None else self.y[self.within]

    @property
    def label_counts(self) -> NDArray[Any]:
        """How many records that enter have each label."""
        return np.unique(self.labels, return_counts=True)[1]

    @property
    def n_labels(self) -> int:
        """Columns of y, where it has one for each label; otherwise 0."""
        return int(self.y.shape[1]) if self.y.ndim == 2 else 0

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    def described(self) -> dict[str, Any]:
        """Return origin and names of the columns as JSON values, as in a store."""
        made = {} if self.origin is None else self.origin.to_json()
        return made if self.feature_names is None else made | {NAMES: self.feature_names.tolist()}

    def limited(self, groups: ArrayLike | None, rows_per_person: int) -> "LocalRecords":
        """Leave out all but the first rows of each person, who may be those of a store."""
        person = self.people(groups)
        if person is None:
            return self
        return replace(self.only(rows_within_limit(person, rows_per_person)), by_person=True)

    def people(self, groups: ArrayLike | None) -> NDArray[np.int64] | None:
        """Return the number of each row's person, by `groups` or the store; None if unknown."""
        if groups is None and isinstance(self.X, Store):
            groups = self.X.people
        return None if groups is None else number_groups([("groups", groups, len(self.y))])

    def only(self, within: NDArray[np.bool_]) -> "LocalRecords":
        """Leave out all other rows."""
        if isinstance(self.X, Store):
            return replace(self, within=within)
        weights = None if self.weights is None else self.weights[within]
        X, y = self.X[within], self.y[within]
        return replace(self, X=X, y=y, weights=weights)

    def encoded(self, task: Task) -> "LocalRecords":
        """Return the records with the targets of a task."""
        return replace(
            self, targets=targets_of(task.encode(self.labels), self.weights, self.within)
        )

    def of_targets(self, question: Callable[[Targets], Any]) -> list[Any]:
        """Return what a question returns for the targets of each partition, here of one."""
        return [question(self.targets)]

    def check(self, n_threads: int) -> None:
        """Read all of a store and refuse what is damaged; matrices were looked at before."""
        if isinstance(self.X, Store):
            # Two threads at least: one of them may be waiting for the disk.
            check_entries(self.X, n_threads=max(2, n_threads))

    def laid_out(self, bound: float, intercept: bool, threads: Threads) -> "LocalRecords":
        """Lay the matrix out for vertices, with entries clipped to a bound."""
        design = design_of(self.X, bound, intercept, threads)
        return replace(self, design=design, whole=StartingRows(design.rows, design.n_columns))

    def rows(self, steps: RoundSteps, threads: Threads) -> RoundRows:
        """Return the rows for a run in rounds."""
        assert self.design is not None, "rows are laid out first"
        records = self.design, self.targets, threads
        return RoundRows(steps, *records, alone=True, make=room_for(self.X), whole=self.whole)

    def gradients(
        self,
        loss: Any,
        threads: Threads,
        kept: NDArray[np.int64] | None = None,
        prior: StartingModel | None = None,
    ) -> GradientRows:
        """Return the records for gradient descent, in the columns that are kept or in all."""
        return build_gradient_rows(self.X, loss, self.targets, threads, kept, prior, self.whole)


def local_records(
    estimator: BaseEstimator, X: Any, y: ArrayLike | None, *, takes_matrix: bool = False
) -> LocalRecords:
    """Check what `fit` is called with; the estimator, named in messages, is left as it is.

    `takes_matrix`: whether y may have a column for each of several labels. A store has its own
    labels.
    """
    options = {"multi_output": True} if takes_matrix and _is_matrix(y) else {}
    if isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) > 1:
        # numpy would make texts of all labels.
        raise DataError("`y` holds texts and other values; give every row a label of one type")
    if not isinstance(X, Store):
        # scikit-learn sets attributes of the estimator; a refused fit must not change it.
        kind = type(estimator) if isinstance(estimator, BaseEstimator) else BaseEstimator
        noted = object.__new__(kind)
        vars(noted).update(vars(estimator))
        matrix, labels = validated(noted, X, _without_duplicates(y), reset=True, **options)
        labels = labels.toarray() if hasattr(labels, "toarray") else labels
        names = getattr(noted, "feature_names_in_", None)
        return LocalRecords(matrix, np.asarray(labels), names, origin_of(X))
    y = X.y if y is None else y
    for size, name in zip(X.shape, ("row", "column"), strict=True):
        if size == 0:
            raise DataError(f"{X.path} has no {name}; at least one is needed")
    with in_our_words():
        labels = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        if labels.ndim != 1 + bool(options):
            raise DataError(
                f"`y` has the shape {labels.shape}; one label for each record is needed"
            )
        check_consistent_length(X, labels)
    return LocalRecords(X, labels, X.feature_names, origin_of(X))


def _without_duplicates(y: Any) -> Any:
    """Return labels; those of a sparse matrix add up in stored order, whatever other records do."""
    try:
        return without_duplicates(y)
    except DataError as error:
        raise DataError(error.problem.replace("X", "`y`", 1), advice=error.advice) from None


def _is_matrix(y: Any) -> bool:
    """Return whether labels have two columns or more, judged by their form alone."""
    if isinstance(y, list | tuple):
        return bool(y) and isinstance(y[0], list | tuple | np.ndarray) and np.size(y[0]) > 1
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return len(shape) == 2 and shape[1] > 1


def validated(estimator: BaseEstimator, X: Any, *y: Any, reset: bool, **options: Any) -> Any:
    """Check a matrix, and labels if given, as scikit-learn does, copying as little as possible."""
    with in_our_words(X):
        if _holds_times(X):
            raise DataError(
                "X holds dates or durations, and one record may change the unit of all: encode "
                "them by a schema (PublicEncoder), or pass numbers"
            )
        if is_text(X):
            raise DataError(
                "X is an array of texts; one text among numbers makes texts of all, and some lose "
                "digits: pass numbers"
            )
        return validate_data(
            estimator,
            without_duplicates(X),
            *y,
            accept_sparse=("csr", "csc"),
            accept_large_sparse=True,
            dtype=(working_dtype(X), np.float32, np.float64),
            reset=reset,
            **options,
        )


def _holds_times(X: Any) -> bool:
    dtypes = getattr(X, "dtypes", None)
    kinds = [getattr(X, "dtype", None)] if dtypes is None else list(dtypes)
    if isinstance(X, list | tuple) and X:
        # numpy makes an array of times only if all entries are times.
        kinds = [np.asarray(X[0]).dtype]
    # Of numpy and pandas, or of polars.
    return any(
        getattr(kind, "kind", "") in ("m", "M") or getattr(kind, "is_temporal", bool)()
        for kind in kinds
    )


def is_text(values: Any) -> bool:
    """Return whether an array holds texts, of which one may have made texts of all numbers."""
    return kind_of(values) in ("U", "S")


def kind_of(values: Any) -> str:
    """Return the letter that numpy has for the type of an array or a column; O if it has none."""
    dtype = getattr(values, "dtype", None)
    # A categorical column has the type of its categories.
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    return str(getattr(dtype, "kind", "O"))


def checked_weights(sample_weight: ArrayLike, n_rows: int, is_private: bool) -> NDArray[np.float64]:
    """Clip weights to 1 with a warning; without privacy, divide them by the largest.

    DataError if there is not one finite weight of at least 0 for each row, or none above 0.
    """
    try:
        if is_text(sample_weight):
            raise TypeError
        weights: NDArray[Any] = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError("`sample_weight` must hold finite numbers only") from None
    if weights.shape != (n_rows,):
        raise DataError(
            f"`sample_weight` has the shape {weights.shape}; one weight for each of {n_rows:,} "
            "rows is needed"
        )
    if not np.isfinite(weights).all() or (weights < 0.0).any():
        raise DataError(
            "`sample_weight` holds NaN, infinity or a negative number; weights must be finite and "
            "at least 0"
        )
    if not weights.any():
        raise DataError(
            "`sample_weight` is zero for every row; at least one weight must be positive"
        )
    largest = 1.0 if is_private else float(weights.max())
    if (weights > largest).any():
        warn_once(
            "`sample_weight` holds weights above 1, which were clipped to 1, because no row of a "
            "private fit counts for more than one record. Divide all weights by a public upper "
            "limit, for example `sample_weight / limit`. This remark comes from looking at the "
            "records: it is for you, not for release.",
            UserWarning,
            stacklevel=6,
        )
    parts: NDArray[np.float64] = np.minimum(weights, largest) / largest
    return parts


def rows_within_limit(person: NDArray[np.int64], rows_per_person: int) -> NDArray[np.bool_]:
    """Choose the first `rows_per_person` rows of each person; other people change nothing."""
    order = np.argsort(person, kind="stable")
    ordered = person[order]
    place = np.arange(person.size) - np.searchsorted(ordered, ordered)
    within = np.zeros(person.size, dtype=bool)
    within[order] = place < rows_per_person
    return within
