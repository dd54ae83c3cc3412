"""Generated schemas and tables; evidence/assurance takes 1,000 of them."""

from hypothesis import given, settings

from dplasso import PublicEncoder, open_store
from dplasso.data.store import write_store
from dplasso.encoding.files import encode_files
from encoding.generated import arrow, tables, write
from encoding.round_trips import SETTINGS, check_matrices, check_predictions, same


@settings(SETTINGS, max_examples=50)
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
    records = encode_files(write(folder / "t.csv", columns), schema)
    store = write_store(records.source, folder / "s", memory=1 << 27, origin=records.origin)
    same(PublicEncoder(schema).transform(arrow(columns)), open_store(store.path).X.tocsr())
