"""Labels and numbers to predict, and names of people as hashes: who is who, and who is nobody."""

import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.row_blocks import encode_files, write_table
from data.store.reference import block_source, random_matrix, write_blocks
from dplasso import DataError, DPLinearRegression, DPLogisticRegression
from schemas import Number, Schema


def fitted(y, declared):
    """Return a model without noise of rows that have an entry for their label, and its labels."""
    X = (y[:, np.newaxis] == np.unique(y)).astype(float)
    model = DPLogisticRegression(np.inf, classes=declared).fit(X, y)
    return model, model.predict(X).tolist()


@pytest.mark.parametrize(
    ("y", "declared", "classes"),
    [
        # From the data they are sorted.
        ([1, 0, 1, 0], None, [0, 1]),
        ([1.0, -1.0], None, [-1.0, 1.0]),
        (["spam", "ham"], None, ["ham", "spam"]),
        (np.array(["b", "a", "b"], object), None, ["a", "b"]),
        (["b", "c", "a", "b"], None, ["a", "b", "c"]),
        # The declared order is kept; labels match across number types, and one may be absent.
        (["no", "yes", "no"], ("yes", "no"), ["yes", "no"]),
        ([1.0, 0.0], (0, 1), [0, 1]),
        ([3.0, 1.0], (3, 2, 1), [3, 2, 1]),
        ([0, 0, 0], [0, 1], [0, 1]),
    ],
)
def test_classes_and_what_is_predicted(y, declared, classes):
    y = np.asarray(y)
    model, predicted = fitted(y, declared)
    assert model.classes_.tolist() == classes
    assert model.classes_.dtype == (y if declared is None else np.asarray(declared)).dtype
    assert predicted == y.tolist()


@pytest.mark.parametrize(("n_records", "declared"), [(21, None), (30, range(30))])
def test_no_number_of_records_makes_many_classes_warn(n_records, declared):
    """scikit-learn warns of 11 classes of 21 records, and not if there is one record more."""
    y = np.arange(n_records) % 11
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert fitted(y, declared)[0].classes_.size == len(declared or range(11))
    assert told == []


@pytest.mark.parametrize("declared", [None, np.array(["ham", "spam"], dtype="<U40")])
def test_a_longer_label_elsewhere_leaves_no_trace(declared):
    y = np.array(["spam", "ham", "a label of somebody else"])[:2]
    assert fitted(y, declared)[0].classes_.dtype == np.dtype("<U4")


@pytest.mark.parametrize(
    ("y", "declared", "row"),
    [
        ([0, 1, 2], (0, 1), 3),
        ([0.0, 1.0, -1.0], (0, 1), 3),
        ([0, 1], ("a", "b"), 1),
        (["a", "b"], (0, 1), 1),
    ],
)
def test_the_row_of_an_undeclared_label_is_named(y, declared, row):
    with pytest.raises(DataError, match="a label that is not one of the declared classes") as error:
        fitted(np.array(y), declared)
    assert str(error.value).endswith(
        f"in row {row} of the rows used; correct it, or declare it as a class too"
    )
    assert f"{declared[0]!r} and {declared[1]!r}" in str(error.value)


def test_one_label_among_the_floats_makes_no_others_of_the_rest():
    """Of a list, numpy makes floats as soon as one label is one."""
    declared = [1, 2**53, 2**53 + 1]
    labels = [2**53 + 1, 2**53, 1]
    assert fitted(np.array(labels), declared)[1] == labels
    with pytest.raises(DataError, match="cannot represent the large whole numbers of the declared"):
        fitted(np.array([*labels, 1.0]), declared)
    assert fitted(np.array([1.0, 2.0**53]), [1, 2**53])[1] == [1, 2**53]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["0", 1, "0"], "texts and other values"),
        (["a", float("nan"), "b"], "texts and other values"),
        (np.array(["0", 1, "0"], object), "give every row a label, all of one"),
        (["a", None, "b"], "texts and other values"),
    ],
)
def test_labels_of_two_types_are_refused(y, words):
    """Of a list, numpy would make texts: "nan" of a label that is missing."""
    with pytest.raises(DataError, match=words):
        DPLogisticRegression(1.0).fit(np.eye(3), y)


@pytest.mark.parametrize(("low", "high"), [(0.0, 10.0), (-1e308, 1e308)])
def test_numbers_are_clipped_and_scaled(low, high):
    y = np.array([low, high, 0.5 * low + 0.5 * high, -1.7e308, 1.7e308])
    model = DPLinearRegression(np.inf, target_bounds=(low, high)).fit(np.eye(5), y)
    expected = np.array([low, high, y[2], low, high]) / high
    np.testing.assert_allclose(model.predict(np.eye(5)) / high, expected, atol=0.01)


def test_one_text_among_the_targets_rounds_no_others():
    """Of a list, numpy writes texts as soon as one target is one: 0.1 for a float16 below it."""
    targets = [np.float16(0.1), 0.5, 1.0]
    bounds = {"target_bounds": (0, 1)}
    for y in ([*targets, "0.1"], ["0.1", "0.2", "0.3", "0.4"], np.arange(4, dtype="m8[D]")):
        with pytest.raises(DataError, match=r"a value that is not a number|texts and other values"):
            DPLinearRegression(1.0, **bounds).fit(np.eye(4), y)
    model = DPLinearRegression(np.inf, **bounds).fit(np.eye(4), [*targets, 0.1])
    assert model.n_features_in_ == 4


@pytest.fixture(scope="module")
def of_people(tmp_path_factory):
    """Make stores of rows that name people."""
    place, schema = tmp_path_factory.mktemp("people"), Schema((Number("x", 1.0),), "y")

    def write(names, memory=2**28):
        path = place / "t.jsonl"
        if isinstance(names, pa.Array):
            more = dict.fromkeys("xy", np.zeros(len(names)))
            path = write_table(place / "t.parquet", pa.table({"who": names} | more))
        else:
            rows = [json.dumps({"who": name, "x": 1.0, "y": 0}) + "\n" for name in names]
            path.write_text("".join(rows))
        source = encode_files(path, schema, person_column="who")
        return write_blocks(source, place / "s", force=True, memory=memory)

    return write


def test_a_whole_number_beyond_every_float_is_refused(tmp_path):
    with pytest.raises(DataError, match="a value that is not a number"):
        DPLinearRegression(1.0, target_bounds=(0, 1)).fit(np.eye(2), [1, 10**400])
    path = tmp_path / "t.jsonl"
    path.write_text('{"x": 1, "y": 1}\n{"x": 1, "y": 1%s}\n' % ("0" * 400))
    with pytest.raises(DataError, match="line 2: the label is not a number"):
        list(encode_files(path, Schema((Number("x", 1.0),), "y")).blocks(1 << 20))


TEXTS = st.sampled_from(["ann", "bob", "Ann", "\ud800", "7", "07", "ann ", "ann\0"])
NUMBERS = st.sampled_from([7, 7.0, 8, 2**60, 2**60 + 1, 2**63, 10**40, -7])


@settings(max_examples=40)
@given(st.lists(TEXTS, min_size=1, max_size=30) | st.lists(NUMBERS, min_size=1, max_size=30))
def test_rows_are_one_person_s_iff_their_names_are_equal(of_people, names):
    numbers = of_people(names).people
    same = [[one == other for other in names] for one in names]
    assert (numbers[:, None] == numbers[None, :]).tolist() == same


def test_both_halves_of_a_hash_count(tmp_path):
    hashes = np.array([[1, 5], [1, 7], [2, 5], [1, 5]])
    source = block_source(random_matrix(4, 20, 0.2), np.arange(4) % 2, people=hashes)
    first, second, third, again = write_blocks(source, tmp_path / "s").people.tolist()
    assert len({first, second, third}) == 3
    assert again == first


@pytest.mark.parametrize("name", [None, "", "  ", 1.5, 2.0**53, True, [1], 7, 7.0])
def test_whoever_is_nobody_is_refused_and_not_quoted(of_people, name):
    with pytest.raises(DataError, match=r"column 'who', line 2: .*; use ") as refusal:
        of_people(["ann", name])
    assert "ann" not in str(refusal.value)


def test_a_column_of_narrow_floats_is_not_trusted_beyond_what_they_hold(of_people):
    with pytest.raises(DataError, match="row 2: a floating-point number"):
        of_people(pa.array([1, 2.0**24], pa.float32()))
    with pytest.raises(DataError, match=r"row 1: a value of type bool"):
        of_people(pa.array([True, False]))
