"""Svmlight text, read as the slow reference reads it, or refused at the same line."""

from decimal import Decimal, getcontext

import numpy as np
import pytest
from evidence.reference import svmlight as reference
from evidence.svmlight import read_svmlight
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from data.row_blocks import check_same
from dplasso import DataError

DIGITS = st.text("0123456789", min_size=1, max_size=25)
TAIL = b"\n1 1:0.5 7:1\n# " + b"-" * 100  # so that the quick way has room to look ahead


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    path = tmp_path_factory.mktemp("svmlight") / "data.svm"

    def write(text):
        path.write_bytes(text)
        return path

    return write


def check_like_reference(write, text, **options):
    """Read what the reference reads, bit for bit, or refuse the line that it refuses."""
    path = write(text)
    told = {name: options[name] for name in options if name not in ("block_bytes", "n_threads")}
    bad_line = None
    try:
        expected = reference.svmlight_records(text, **told)
    except reference.BadLineError as error:
        bad_line = str(error)
    if bad_line is not None:
        with pytest.raises(DataError) as caught:
            read_svmlight(path, **options)
        message = str(caught.value).removeprefix(str(path))
        assert message.startswith((f", line {bad_line}: ", ": the content is "))
        return
    entries = [entry for _, row in expected for entry in row]
    if not expected or (not entries and told.get("n_features") is None):
        with pytest.raises(DataError, match="no record"):
            read_svmlight(path, **options)
        return
    X, y = read_svmlight(path, **options)
    X.check_format()
    assert X.has_canonical_format
    largest = max((column for column, _ in entries), default=-1)
    assert X.shape == (len(expected), told.get("n_features") or largest + 1)
    labels = np.array([label for label, _ in expected])
    np.testing.assert_array_equal(y.view(np.int64), labels.view(np.int64))
    assert np.diff(X.indptr).tolist() == [len(row) for _, row in expected]
    assert X.indices.tolist() == [column for column, _ in entries]
    values = np.array([value for _, value in entries], np.float32)
    np.testing.assert_array_equal(X.data.view(np.int32), values.view(np.int32))


# --- the format ---------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    zero_based=st.booleans(),
    binary=st.booleans(),
    block_bytes=st.sampled_from([1, 7, 64, 1000, 1 << 20]),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
@settings(max_examples=30, deadline=None)
def test_reads_what_scikit_learn_reads(
    write, tmp_path_factory, seed, zero_based, binary, block_bytes, mark
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
    theirs = load_svmlight_file(str(path), dtype=np.float32, zero_based=zero_based)
    write(mark + path.read_bytes())
    ours, labels = read_svmlight(path, zero_based=zero_based, block_bytes=block_bytes)
    check_same(ours, labels, *theirs)
    assert (ours.shape, ours.indices.dtype, labels.dtype) == (tuple(shape), np.int32, np.float64)


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
@settings(max_examples=100, deadline=None)
def test_numbers_are_those_of_python(write, texts):
    text = "".join(f"{number} 1:{number}\n" for number in texts).encode()
    check_like_reference(write, text)


# --- errors -------------------------------------------------------------------------------

LONG = "9" * 500
# A message, and lines that get it.
PROBLEMS = {
    "entry 1: there is no colon; write index:value": "1 3-1|1 3 :1",
    "entry 2: there is no colon": "1 3:1 5",
    "entry 1: the index is not a whole number": f"1 :4|1 a:4|1 1.5:4|1 +3:4|1 \0:1|1 {LONG}x:1",
    "1: the value is not a number": "1 3: 1|1 3:x|1 3:1:2|1 3:1_0|1 3:0x1p3|1 3:1e|1 3:.|1 3:1,5",
    "entry 1: the value is NaN or infinite": "1 3:nan|1 3:-Inf",
    "1: the value is too large for float32": "1 3:1e39|1 3:-1e999|1 3:1e9999999999999999999999",
    "the label is not a number": "yes 3:1|1,2 3:1|\xff\xfe1 3:1",
    "the label is NaN or infinite": "nan 3:1|1e999 3:1",
    "the label is missing, because the line begins with an entry": "3:1 4:1|qid:3 4:1",
    "entry 1: the index is negative": "1 -3:1",
    r"the index is 0, but columns are counted from 1; .* set zero_based": "1 0:1",
    "entry 2: the index appears twice": "1 3:1 3:2",
    "entry 2: the index is smaller than the previous one; indices must": "1 5:1 3:2",
    "the index is beyond 123, but 123 columns are declared": "1 130:1",
    "the index is beyond the largest": "1 9223372036854775808:1|1 99999999999999999999999:1",
}
BAD_LINES = {
    line.encode("latin-1"): problem
    for problem, lines in PROBLEMS.items()
    for line in lines.split("|")
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
    with pytest.raises(DataError, match="the index is beyond 121, but 122 columns are declared"):
        read_svmlight(path, zero_based=True, n_features=122)
    with pytest.raises(DataError, match="beyond the largest"):
        read_svmlight(write(b"1 9223372036854775807:1\n"), zero_based=True)


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# only\n   # comments", b"1\n-1\n"])
def test_a_file_without_records_or_columns(write, text):
    problem = "no record has an entry; set the number" if text[:1] == b"1" else "holds no records"
    with pytest.raises(DataError, match=rf"data\.svm.* {problem}"):
        read_svmlight(write(text), n_features=None if text[:1] == b"1" else 3)


# --- any text ------------------------------------------------------------------------------

GOOD_LINES = [
    b"1 1:1 2:0.5 30:-0.25",
    b"-1 5:0.01652723178267479 1451:0.013066593557596211234567 99999999:1e-3",
    b"+1 12345678:12345678.5 123456789:1. 1234567890123456:.5 12345678901234567:7",
    b"0 1:0 2:-0 3:+1 4:1e+2 5:1E-2 6:0.0000000000000000001",
    b"1.5e0\t1:1\x0b2:2\x0c3:3 \r",
    *(b"2 # a comment 1:1", b"# 1 1:1", b"", b"1"),
    *(b"pos 1:1", b"neg 2:1#x", b"a:b 1:3", "\u00e9 4:1".encode()),
    *(b"1 9223372036854775807:1", b"1 2147483647:1 2147483648:2"),
    b"1 1:16777217 2:1.000000059604644775390625 3:3.4028235677973366e38 4:1e-46",
]
LINES = [*GOOD_LINES, *BAD_LINES, b"1 1:1\x002:1", b"1 1:\xd9\xa1"]


@pytest.mark.parametrize("line", LINES, ids=repr)
def test_every_class_of_line(write, line):
    for text in (line + TAIL, line * 2 + TAIL, b"1 2:1\n\n" + line):
        for zero_based in (False, True):
            check_like_reference(write, text, zero_based=zero_based)


@pytest.mark.parametrize(
    "text",
    [
        b"1" * 300_000,
        b"1 1:0." + b"1" * 300_000,
        b"1 " + b"0" * 300_000 + b"7:1",
        b"1 1:1" + b"#" * 300_000,
        b"\n" * 300_000 + b"1 1:1",
        b"1 1:1.000000059604644775390625\n" * 5_000,
        b"qid:" * 80_000,
        b"1 1:1e" + b"9" * 300_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_long_runs_of_one_thing(write, text):
    check_like_reference(write, text, n_threads=2, n_features=9)
