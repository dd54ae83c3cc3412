"""Python and files give the same matrix, and raw rows the same predictions, bit for bit.

    python tests/encoding/round_trips.py 1000

does so for as many generated schemas and tables, and prints how many; the tests do it for a few.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from scipy.sparse import csr_array

from cli.conftest import done
from data.row_blocks import check_same, gather_table
from dplasso import DPLassoClassifier, PublicEncoder, load
from encoding.generated import arrow, frame, tables, write
from schemas import schema_of

SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck))


def check_matrices(schema, columns, folder):
    """Assert that every way to read a table gives the same matrix."""
    assert schema_of(schema.to_json()) == schema
    X = PublicEncoder(schema).fit_transform(arrow(columns))
    assert X.has_canonical_format
    assert csr_array((X.data, X.indices, X.indptr), X.shape).has_canonical_format
    assert X.dtype == np.float32
    check_same(X, 0, PublicEncoder(schema.to_json()).transform(frame(columns)), 0)
    names = PublicEncoder(schema).get_feature_names_out()
    assert names.shape == (X.shape[1],)
    assert schema.names([X.shape[1] - 1]) == [names[-1]]
    for name in ("t.csv", "t.jsonl", "t.parquet"):
        found, y, _ = gather_table(write(folder / name, columns), schema)
        check_same(X, y.tolist(), found, columns["label"])
    for row in range(X.shape[0]):  # a record's row is its own
        alone = arrow(columns).slice(row, 1)
        check_same(csr_array(X[[row]]), 0, PublicEncoder(schema).transform(alone), 0)


def check_predictions(schema, columns, folder):
    """Assert that raw rows are predicted as encoded ones."""
    X = PublicEncoder(schema).transform(frame(columns))
    model = DPLassoClassifier(epsilon=50.0, random_state=0)
    model.fit(X, columns["label"]).save(folder / "m.npz")
    loaded = load(folder / "m.npz")
    assert loaded.model_.origin.schema == schema
    expected = model.decision_function(X)
    np.testing.assert_array_equal(loaded.decision_function(frame(columns)), expected)
    raw = {name: values for name, values in columns.items() if name != "label"}
    probabilities = [f"{value:.9g}" for value in model.predict_proba(X)[:, 1]]
    for name, found in (("t.csv", columns), ("t.parquet", raw)):
        told = done("predict", "--proba", folder / "m.npz", write(folder / name, found)).stdout
        assert told.split() == ["yes", *probabilities]


def main(n_examples):
    """Run both checks on generated schemas and tables, and print how many there were."""
    checks = (check_matrices, check_predictions)
    print(json.dumps({check.__name__: count(check, n_examples) for check in checks}))


def count(check, n_examples):
    """Run a check, and return how often it was."""
    done = []

    @settings(SETTINGS, max_examples=n_examples, database=None)
    @given(tables())
    def every(found):
        with tempfile.TemporaryDirectory() as folder:
            check(*found, Path(folder))
        done.append(True)

    every()
    return len(done)


if __name__ == "__main__":
    main(int(sys.argv[1]))
