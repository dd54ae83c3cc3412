from decimal import Decimal, getcontext

import numpy as np
import pytest
from evidence.reference import svmlight as reference
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from data.svmlight.against_reference import check_like_reference
from dplasso.data.svmlight.kernel import parse_block
from dplasso.data.svmlight.reader import read_svmlight
from dplasso.errors import DataError

DIGITS = st.text("0123456789", min_size=1, max_size=25)


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    path = tmp_path_factory.mktemp("svmlight") / "data.svm"

    def write(text):
        path.write_bytes(text)
        return path

    return write


# --- the format ---------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    zero_based=st.booleans(),
    binary=st.booleans(),
    block_bytes=st.sampled_from([1, 7, 64, 1000, 1 << 20]),
)
@settings(max_examples=60, deadline=None)
def test_reads_what_scikit_learn_reads(
    write, tmp_path_factory, seed, zero_based, binary, block_bytes
):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 30, size=2)
    X = rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 9)
    X = (X != 0).astype(float) if binary else X
    X[rng.random(shape) < 0.7] = 0
    X[0, -1] = 1.5  # so that the number of columns can be told
    y = rng.choice([-1.0, 1.0, 0.25], size=shape[0])
    path = write(b"")
    dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    theirs, their_labels = load_svmlight_file(str(path), dtype=np.float32, zero_based=zero_based)
    ours, labels = read_svmlight(path, zero_based=zero_based, block_bytes=block_bytes)
    assert ours.shape == theirs.shape == tuple(shape)
    np.testing.assert_array_equal(ours.indptr, theirs.indptr)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_array_equal(ours.data, theirs.data)
    np.testing.assert_array_equal(labels, their_labels)
    assert (ours.data.dtype, ours.indices.dtype, labels.dtype) == (np.float32, np.int32, np.float64)


def test_comments_blank_lines_queries_and_line_ends(write):
    text = (
        b"# a comment\r\n\r\n+1 qid:3 1:0.5\t3:-2e-1 # the first\r\n   \n"
        b"0\n 2 2:.5 3:7.#no space\n1.0 qid:-4\n-1 007:1"
    )
    X, y = read_svmlight(write(text))
    np.testing.assert_array_equal(y, [1, 0, 2, 1, -1])
    expected = np.zeros((5, 7), np.float32)
    expected[0, [0, 2]] = 0.5, -0.2
    expected[2, [1, 2]] = 0.5, 7
    expected[4, 6] = 1
    np.testing.assert_array_equal(X.toarray(), expected)


def test_columns_declared_or_counted(write):
    path = write(b"1 2:1\n-1 4:1\n")
    assert read_svmlight(path)[0].shape == (2, 4)
    assert read_svmlight(path, n_features=10)[0].shape == (2, 10)
    assert read_svmlight(path, zero_based=True)[0].shape == (2, 5)
    assert read_svmlight(write(b"1\n-1\n"), n_features=3)[0].shape == (2, 3)


def test_explicit_zeros_are_entries(write):
    X, _ = read_svmlight(write(b"1 1:0 2:-0 3:0e5\n"))
    assert X.nnz == 3
    assert np.signbit(X.data).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("index", "expected"),
    [(2**31 - 1, np.int32), (2**31, np.int64), (2**31 + 5, np.int64), (2**63 - 1, np.int64)],
)
def test_indices_are_as_wide_as_they_must_be(write, index, expected):
    # The wide index comes in a later block than the narrow ones, and narrow ones after it.
    X, _ = read_svmlight(write(f"1 3:1\n1 5:1 {index}:2\n-1 7:3\n".encode()), block_bytes=8)
    assert X.shape == (3, index)
    assert X.indices.dtype == X.indptr.dtype == expected
    assert X.indices.tolist() == [2, 4, index - 1, 6]


# --- numbers ------------------------------------------------------------------------------


def halfway_texts():
    """Decimals on and next to the midpoint of two neighbouring float32, where rounding is hard."""
    getcontext().prec = 300

    def text(bits, nudge, shift):
        low = np.uint32(bits).view(np.float32)
        high = np.uint32(bits + 1).view(np.float32)
        middle = (Decimal(float(low)) + Decimal(float(high))) / 2
        middle += middle * nudge * Decimal(10) ** -shift
        return str(middle)

    # Up to the second largest float32.
    bits = st.integers(0, 0x7F7FFFFE)
    return st.builds(text, bits, st.integers(-1, 1), st.integers(5, 60))


number_texts = st.one_of(
    halfway_texts(),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(min_value=-3e38, max_value=3e38).map(repr),
    st.integers(-(10**30), 10**30).map(str),
    st.builds(
        "{}{}.{}{}{}".format,
        st.sampled_from(["", "-", "+"]),
        DIGITS,
        DIGITS,
        st.sampled_from(["e", "E", "e-", "e+"]),
        st.integers(0, 70).map(str),
    ),
    st.builds("{}.{}".format, DIGITS, st.sampled_from(["", "0", "5" * 40])),
    st.builds(".{}".format, DIGITS),
)


@given(texts=st.lists(number_texts, min_size=1, max_size=20))
@example(texts=["0.016527231782674791234", "16777217", "16777219", "1e-45", "7e-46", "8e-46"])
@example(texts=["0." + "0" * 400 + "1e401", "1" + "0" * 400 + "e-400", "0e99999999999999999999"])
@example(texts=["1e-99999999999999999999", "3.4028235677973366e38", "340282356779733661637539395"])
@settings(max_examples=200, deadline=None)
def test_numbers_are_those_of_python(write, texts):
    text = "".join(f"{number} 1:{number}\n" for number in texts).encode()
    check_like_reference(write(text), text)


@pytest.mark.parametrize(
    ("number", "n_hard"),
    [
        ("0.01652723178267479", 0),
        ("-1234567.", 0),
        ("0.013066593557596211234567", 1),
        ("1e-05", 1),
        ("+1", 1),
        ("1.000000059604644775390625", 1),  # midway between two float32
        ("1.00000005960464477539062500001", 1),
        ("1e309", 1),
        ("seven", 1),  # and found out there
    ],
)
def test_few_numbers_are_left_to_python(number, n_hard):
    # The comment leaves the quick way room to look ahead.
    text = f"1 1:{number}\n# {'-' * 100}".encode()
    labels, starts, ends = np.empty(1), np.empty(1, np.int64), np.empty(1, np.int64)
    columns, values = np.empty(1, np.int64), np.empty(1, np.float32)
    hard = np.empty((2, 3), np.int64)
    eights = np.frombuffer(text, np.uint64, len(text) // 8)
    result = parse_block(
        np.frombuffer(text, np.uint8),
        *(eights, 1, 9, labels, starts, ends, columns, values, hard),
    )
    assert result == (1, 1, n_hard, 0, -1)
    if n_hard:
        assert hard[0].tolist() == [0, 4, 4 + len(number)]
    else:
        assert values[0] == np.float32(float(number))


# --- blocks -------------------------------------------------------------------------------


@pytest.mark.parametrize("block_bytes", [*range(1, 40), 1000])
def test_lines_that_straddle_blocks(write, block_bytes):
    text = b"# one\n1 1:0.25 30:4\n\n-1 qid:1 2:1e3 # two\r\n" + b"1 7:1 8:1 9:1\n" * 3 + b"0 3:1"
    check_like_reference(write(text), text, block_bytes=block_bytes)


@pytest.mark.parametrize("block_bytes", [1, 5, 16, 1000])
def test_the_line_of_an_error_counts_all_blocks(write, block_bytes):
    path = write(b"1 1:1\n" * 20 + b"# nothing\n\n1 x:1\n")
    with pytest.raises(DataError, match=r"data\.svm, line 23: entry 1: the index is not"):
        read_svmlight(path, block_bytes=block_bytes)


# --- errors -------------------------------------------------------------------------------

BAD_LINES = {
    b"1 3-1": "entry 1: there is no colon; an entry is index:value",
    b"1 3:1 5": "entry 2: there is no colon",
    b"1 3 :1": "entry 1: there is no colon",
    b"1 3: 1": "entry 1: the value is not a number",
    b"1 :4": "entry 1: the index is not a whole number",
    b"1 a:4": "entry 1: the index is not a whole number",
    b"1 1.5:4": "entry 1: the index is not a whole number",
    b"1 +3:4": "entry 1: the index is not a whole number",
    b"1 3:x": "entry 1: the value is not a number",
    b"1 3:1:2": "entry 1: the value is not a number",
    b"1 3:1_0": "entry 1: the value is not a number",
    b"1 3:0x1p3": "entry 1: the value is not a number",
    b"1 3:1e": "entry 1: the value is not a number",
    b"1 3:.": "entry 1: the value is not a number",
    b"1 3:1,5": "entry 1: the value is not a number",
    b"1 3:nan": "entry 1: the value is NaN or infinite",
    b"1 3:-Inf": "entry 1: the value is NaN or infinite",
    b"1 3:1e39": "entry 1: the value is too large for float32",
    b"1 3:-1e999": "entry 1: the value is too large for float32",
    b"1 3:1e9999999999999999999999": "is too large for float32",
    b"yes 3:1": "the label is not a number",
    b"1,2 3:1": "the label is not a number",
    b"nan 3:1": "the label is NaN or infinite",
    b"1e999 3:1": "the label is NaN or infinite",
    b"3:1 4:1": "the label is missing: the line begins with an entry",
    b"qid:3 4:1": "the label is missing",
    b"1 qid:x 4:1": "the query number is not one",
    b"1 4:1 qid:3": "entry 2: the index is not a whole number",
    b"1 -3:1": "entry 1: the index is negative",
    b"1 0:1": r"entry 1: the index is 0, but columns are counted from 1; .* \(zero_based=True\)",
    b"1 3:1 3:2": "entry 2: its index appears twice",
    b"1 5:1 3:2": "entry 2: its index is smaller than the one before; indices must increase",
    b"1 130:1": "the index is beyond 123, as 123 columns are declared",
    b"1 9223372036854775808:1": "the index is beyond the largest",
    b"1 99999999999999999999999:1": "the index is beyond the largest",
    b"1 \x00:1": "entry 1: the index is not a whole number",
    b"\xff\xfe1 3:1": "the label is not a number",
    b"1 " + b"9" * 500 + b"x:1": "entry 1: the index is not a whole number",
}


@pytest.mark.parametrize(("line", "problem"), BAD_LINES.items(), ids=repr)
def test_a_malformed_line_is_named(write, line, problem):
    path = write(b"1 1:1\n\n" + line + b"\n1 also:wrong\n")
    with pytest.raises(DataError, match=problem) as caught:
        read_svmlight(path, n_features=123 if b"130" in line else None)
    assert str(caught.value).startswith(f"{path}, line 3: ")
    with pytest.raises(reference.BadLineError, match="3"):
        reference.svmlight_records(path.read_bytes(), n_features=123)


def test_counted_from_zero(write):
    path = write(b"1 0:1 122:1\n")
    assert read_svmlight(path, zero_based=True, n_features=123)[0].shape == (1, 123)
    with pytest.raises(DataError, match="the index is beyond 121, as 122 columns are declared"):
        read_svmlight(path, zero_based=True, n_features=122)
    with pytest.raises(DataError, match="beyond the largest"):
        read_svmlight(write(b"1 9223372036854775807:1\n"), zero_based=True)


def test_the_first_of_two_errors_is_named(write):
    # The first is found late, by Python's float; the second at once, by the kernel.
    path = write(b"1 1:1e39\n1 0:1\n")
    with pytest.raises(DataError, match="line 1: entry 1: the value is too large"):
        read_svmlight(path)


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# only\n   # comments", b"1\n-1\n"])
def test_a_file_without_records_or_columns(write, text):
    problem = "no record has an entry; say how many" if text[:1] == b"1" else "it holds no records"
    with pytest.raises(DataError, match=rf"data\.svm: {problem}"):
        read_svmlight(write(text), n_features=None if text[:1] == b"1" else 3)
