"""The scikit-learn transformer that encodes a table as sparse rows by a public schema."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin

from dplasso.data.blocks import RowBlock, joined
from dplasso.data.store import Store
from dplasso.data.table_batches import check_columns
from dplasso.encoding.contract import as_arrow
from dplasso.encoding.origin import Origin, check_same_origin, origin_of, warn_of_draft, with_origin
from dplasso.encoding.schema import Schema, encode, read_schema, schema_from_json
from dplasso.errors import DataError, need

_ROWS_AT_ONCE = 1 << 16
# Names of hashed columns, as objects, take about a hundred bytes each.
_MOST_NAMES = 1 << 24


class PublicEncoder(TransformerMixin, BaseEstimator):
    """Encode a table by a public schema, learning nothing from the records.

    The schema determines every column of the result, and each row depends on its own record only,
    so the encoding uses no privacy budget. A model trained on the result, or in a pipeline with
    the encoder, keeps the schema in its file (docs/tables.md).

    Parameters
    ----------
    schema : Schema, mapping or path
        How to encode the table's columns: a `Schema`, its JSON document, or a JSON file.

    Attributes
    ----------
    schema_ : Schema
        The schema, read and checked.
    n_features_in_ : int
        Number of table columns that the schema uses.
    feature_names_in_ : ndarray of str objects
        Their names. Other columns of a table are ignored.

    Examples
    --------
    >>> import pandas as pd
    >>> from dplasso import PublicEncoder
    >>> table = pd.DataFrame({"sex": ["F", "M", None], "age": [34.0, 71.0, 250.0]})
    >>> encoder = PublicEncoder({"parts": [
    ...     {"kind": "categories", "column": "sex", "categories": ["F", "M"]},
    ...     {"kind": "bins", "column": "age", "edges": [40, 65, 120], "missing": "ignore"},
    ... ]})
    >>> encoder.fit_transform(table).toarray().astype(int)
    array([[1, 0, 0, 0, 1, 0, 0, 0],
           [0, 1, 0, 0, 0, 0, 1, 0],
           [0, 0, 0, 1, 0, 0, 0, 1]])
    >>> encoder.get_feature_names_out()[[3, 6]].tolist()
    ['sex (missing)', '65<=age<120']
    """

    def __init__(self, schema: Schema | Mapping[str, Any] | str | PathLike[str]) -> None:
        self.schema = schema

    @property
    def schema_(self) -> Schema:
        """The schema, read and checked."""
        if isinstance(self.schema, Schema):
            return self.schema
        if isinstance(self.schema, Mapping):
            return schema_from_json(self.schema)
        return read_schema(self.schema)  # type: ignore[arg-type]

    @property
    def n_features_in_(self) -> int:
        """Number of table columns that the schema uses."""
        return len(self.schema_.columns)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the table columns that the schema uses."""
        return np.array(self.schema_.columns, dtype=object)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Check the schema and the table's columns; learn nothing from the records.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or RecordBatch
            The table. An unedited draft (`suggest`) as schema issues `PrivacyLeakWarning`.
        y : ignored

        Raises
        ------
        DataError, ValueError
            If X is not a table or lacks a column; if the schema cannot be used.
        """
        schema = self.schema_
        warn_of_draft(Origin(schema), stacklevel=3)
        arrow_table(X, schema.columns)
        return self

    def transform(self, X: Any) -> csr_array:
        """Encode a table.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or RecordBatch
            The table; NaN, null and an empty string are missing values.

        Returns
        -------
        csr_array of float32, shape (N, D)

        Raises
        ------
        DataError, ValueError
            As `fit`, or if X holds values that the schema cannot encode.
        """
        schema = self.schema_
        table = arrow_table(X, schema.columns)
        steps = range(0, table.num_rows, _ROWS_AT_ONCE)
        X, _, _ = joined((_encoded(schema, table, first) for first in steps), schema.n_features)
        return with_origin(X, Origin(schema))  # type: ignore[no-any-return]

    def fit_transform(self, X: Any, y: Any = None) -> csr_array:
        """Check the schema as `fit` does, and encode a table as `transform` does."""
        rows = self.fit(X, y).transform(X)
        return with_origin(rows, Origin(self.schema_, warned=True))  # type: ignore[no-any-return]

    def get_feature_names_out(self, input_features: Any = None) -> "NDArray[np.object_]":  # noqa: ARG002
        """Return the names of the features.

        A hashed feature is named after the schema's public words, or else has only a number.

        Returns
        -------
        ndarray of str objects, shape (D,)

        Raises
        ------
        ValueError
            If there are more than 2^24 features. Use ``schema_.names(columns)`` to name some.
        """
        schema = self.schema_
        if schema.n_features > _MOST_NAMES:
            raise ValueError(
                f"the encoder has {schema.n_features:,} features, too many to name all; name some "
                "with encoder.schema_.names([...])"
            )
        return np.array(schema.names(range(schema.n_features)), dtype=object)

    @staticmethod
    def suggest(X: Any, label: str | None = None) -> Schema:
        """Draft a schema from a table, for a person to edit.

        The draft is **not private**: its categories, ranges and choice of columns come from the
        records. Its `note` says so, and `fit` warns until you remove the note.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or RecordBatch
            The table.
        label : str, optional
            Column of the labels. The draft does not encode it as a feature.

        Returns
        -------
        Schema
            To edit it, write ``json.dumps(draft.to_json(), indent=1)`` to a file.
        """
        from dplasso.encoding.suggest import suggest_schema

        return suggest_schema(arrow_table(X), label)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags


def is_frame(X: Any) -> bool:
    """Return whether X is a table with named columns, not a matrix or a store."""
    is_lazy = hasattr(X, "collect")  # a query of polars, not its result
    return not is_lazy and hasattr(X, "columns") and not isinstance(X, np.ndarray | Store)


def arrow_table(X: Any, columns: list[str] | None = None) -> Any:
    """Return a table, or some of its columns, as pyarrow.Table."""
    need("pyarrow", "A table")
    import pyarrow as pa

    if not is_frame(X):
        lazy = ": call its collect()" if hasattr(X, "collect") else ""
        raise DataError(
            "X must be a table with named columns (pandas, polars or pyarrow), "
            f"not {type(X).__name__}{lazy}"
        )
    names = list(X.schema.names if isinstance(X, pa.Table | pa.RecordBatch) else X.columns)
    check_columns(names, names if columns is None else columns, "the table has")
    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    if isinstance(X, pa.Table):
        return X if columns is None else X.select(columns)
    chosen = X if columns is None else X[columns]
    if hasattr(type(X), "to_arrow"):
        return chosen.to_arrow()
    return pa.table(
        {str(name): as_arrow(chosen[name], f"column {name!r} of the table") for name in chosen}
    )


def encoded_alike(X: Any, origin: Origin | None, name: str = "X") -> Any:
    """Encode a table as rows of this origin were; refuse rows that were encoded differently."""
    if origin is not None and origin.schema is not None and is_frame(X):
        X = PublicEncoder(origin.schema).transform(X)
        if origin.binarize:
            X.data[:] = 1  # no entry is 0
        return X
    check_same_origin(origin, origin_of(X), name)
    return X


def _encoded(schema: Schema, table: Any, first: int) -> RowBlock:
    piece = table.slice(first, _ROWS_AT_ONCE).unify_dictionaries()
    columns = {name: piece.column(name).combine_chunks() for name in schema.columns}

    def where(column: str, row: int | None) -> str:
        at = f"column {column!r}"
        return at if row is None else f"{at}, row {first + row + 1}"

    return RowBlock(*encode(schema, columns, where), np.zeros(piece.num_rows))
