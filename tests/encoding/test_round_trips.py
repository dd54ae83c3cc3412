"""Generated schemas and tables; evidence/assurance takes 1,000 of them."""

import json

from hypothesis import given, settings

from cli.conftest import done
from data.row_blocks import check_same
from dplasso import PublicEncoder, open_store
from encoding.generated import arrow, tables, write
from encoding.round_trips import SETTINGS, check_matrices, check_predictions


@settings(SETTINGS, max_examples=20)
@given(tables())
def test_every_way_to_read_a_table_gives_the_same_matrix(tmp_path_factory, found):
    check_matrices(*found, tmp_path_factory.mktemp("tables"))


@settings(SETTINGS, max_examples=10)
@given(tables())
def test_raw_rows_are_predicted_as_encoded_ones(tmp_path_factory, found):
    check_predictions(*found, tmp_path_factory.mktemp("tables"))


@settings(SETTINGS, max_examples=10)
@given(tables())
def test_a_store_holds_the_same_matrix(tmp_path_factory, found):
    schema, columns = found
    folder = tmp_path_factory.mktemp("tables")
    (folder / "schema.json").write_text(json.dumps(schema.to_json()))
    table = write(folder / "t.csv", columns)
    done("convert", table, folder / "s", "--schema", folder / "schema.json")
    X = PublicEncoder(schema).transform(arrow(columns))
    check_same(open_store(folder / "s").X.tocsr(), 0, X, 0)
