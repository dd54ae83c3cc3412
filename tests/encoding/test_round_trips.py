"""Python and files give the same matrix, and raw rows the same predictions, bit for bit.

`DPLASSO_ROUND_TRIPS` says how many schemas and tables; evidence/assurance runs 1,000.
"""

import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from scipy.sparse import csr_array
from typer.testing import CliRunner

from dplasso import DPLassoClassifier, PublicEncoder, load
from dplasso.cli.app import app
from dplasso.data.store import open_store, write_store
from dplasso.encoding.files import encode_files, read_records
from dplasso.encoding.schema import schema_from_json
from encoding.generated import arrow, frame, tables, write

N_EXAMPLES = int(os.environ.get("DPLASSO_ROUND_TRIPS", "50"))
SLOW = settings(
    max_examples=N_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def same(X, Y):
    assert X.shape == Y.shape
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(X, name), getattr(Y, name))
    assert X.data.dtype == Y.data.dtype == np.float32


@SLOW
@given(tables())
def test_every_way_to_read_a_table_gives_the_same_matrix(tmp_path_factory, given):
    schema, columns = given
    folder = tmp_path_factory.mktemp("tables")
    assert schema_from_json(schema.to_json()) == schema
    X = PublicEncoder(schema).fit_transform(arrow(columns))
    assert (np.diff(X.indptr) <= schema.n_features).all()
    assert X.has_sorted_indices
    same(X, PublicEncoder(schema.to_json()).transform(frame(columns)))
    names = PublicEncoder(schema).get_feature_names_out()
    assert names.shape == (X.shape[1],)
    assert schema.names([X.shape[1] - 1]) == [names[-1]]
    for name in ("t.csv", "t.jsonl", "t.parquet"):
        data = read_records(write(folder / name, columns), schema=schema)
        same(X, data.X)
        assert data.y.tolist() == columns["label"]
    for row in range(X.shape[0]):  # a record's row is its own
        alone = arrow(columns).slice(row, 1)
        same(csr_array(X[[row]]), PublicEncoder(schema).transform(alone))


@settings(SLOW, max_examples=max(N_EXAMPLES // 5, 10))
@given(tables())
def test_raw_rows_are_predicted_as_encoded_ones(tmp_path_factory, given):
    schema, columns = given
    folder = tmp_path_factory.mktemp("tables")
    X = PublicEncoder(schema).transform(frame(columns))
    model = DPLassoClassifier(epsilon=50.0, n_iter=4, random_state=0)
    model.fit(X, columns["label"]).save(folder / "m.npz")
    loaded = load(folder / "m.npz")
    assert loaded.model_.origin.schema == schema
    expected = model.decision_function(X)
    np.testing.assert_array_equal(loaded.decision_function(frame(columns)), expected)
    raw = {name: values for name, values in columns.items() if name != "label"}
    probabilities = [f"{value:.9g}" for value in model.predict_proba(X)[:, 1]]
    for name, found in (("t.csv", columns), ("t.parquet", raw)):
        arguments = ["predict", "--proba", folder / "m.npz", write(folder / name, found)]
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code == 0, result.output
        assert result.stdout.split() == probabilities


@settings(SLOW, max_examples=10)
@given(tables())
def test_a_store_holds_the_same_matrix(tmp_path_factory, given):
    schema, columns = given
    folder = tmp_path_factory.mktemp("tables")
    X = PublicEncoder(schema).transform(arrow(columns))
    if X.nnz == 0:
        return
    records = encode_files(write(folder / "t.csv", columns), schema)
    write_store(records.source, folder / "s", memory=1 << 27, origin=records.origin)
    same(X, open_store(folder / "s").X.tocsr())
