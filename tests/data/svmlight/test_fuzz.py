"""Any bytes: read as the slow reference reads them, or refused at the same line."""

import random

import numpy as np
import pytest
from evidence.assurance.fuzz_mutations import corrupt_text
from evidence.reference import svmlight as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from data.svmlight.against_reference import check_like_reference
from dplasso.data.svmlight.numbers import scan_digits, scan_plain

WORDS = {"neg": 0, "pos": 1, "a:b": 2, "-1": 0, "+2.0": 1, "\u00e9": 3}

# One line of every class there is, good and bad; what follows it is good.
CORPUS = [
    b"1 1:1 2:0.5 30:-0.25",
    b"-1 5:0.01652723178267479 1451:0.013066593557596211234567 99999999:1e-3",
    b"+1 12345678:12345678.5 123456789:1. 1234567890123456:.5 12345678901234567:7",
    b"0 qid:7 1:0 2:-0 3:+1 4:1e+2 5:1E-2 6:0.0000000000000000001",
    b"1.5e0\t1:1\x0b2:2\x0c3:3 \r",
    b"2 # a comment 1:1",
    b"# 1 1:1",
    b"",
    b"1",
    b"pos 1:1",
    b"neg qid:-3 2:1#x",
    b"a:b 1:3",
    "\u00e9 4:1".encode(),
    b"1 9223372036854775807:1",
    b"1 2147483647:1 2147483648:2",
    b"1 1:16777217 2:1.000000059604644775390625 3:3.4028235677973366e38 4:1e-46",
    b"1 0:1",
    b"1 2:1 2:1",
    b"1 3:1 2:1",
    b"1 3:",
    b"1 3: 1",
    b"1 :1",
    b"1 3",
    b"1 3:1:1",
    b"1 3:nan",
    b"1 3:-inf",
    b"1 3:1e39",
    b"1 3:0x10",
    b"1 3:1,5",
    b"1 -3:1",
    b"1 9223372036854775808:1",
    b"1 1:1 qid:3",
    b"x 1:1",
    b"nan 1:1",
    b"1e999 1:1",
    b"\x00",
    b"\xff\xfe1 1:1",
    b"1 1:1\x002:1",
    b"1 1:\xd9\xa1",
]
TAIL = b"\n1 1:0.5 7:1\n# " + b"-" * 100  # so that the quick way has room to look ahead


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "data.svm"


options = st.fixed_dictionaries(
    {"block_bytes": st.sampled_from([1, 9, 150, 1 << 20]), "n_threads": st.integers(1, 3)},
    optional={
        "zero_based": st.booleans(),
        "n_features": st.sampled_from([8, 30, 2**31, 2**40]),
        "label_map": st.just(WORDS),
    },
)


@pytest.mark.parametrize("line", CORPUS, ids=repr)
@pytest.mark.parametrize("label_map", [None, WORDS], ids=["numbers", "words"])
def test_every_class_of_line(path, line, label_map):
    for text in (line + TAIL, line * 2 + TAIL, b"1 2:1\n\n" + line):
        for zero_based in (False, True):
            check_like_reference(path, text, label_map=label_map, zero_based=zero_based)


# Good lines mostly, so that the mutation and not the corpus decides; and bytes of no kind at all.
lines = st.one_of(
    st.sampled_from(CORPUS).map(lambda line: [line, *CORPUS[:6]]),
    st.lists(st.sampled_from(CORPUS), min_size=1, max_size=5),
    st.binary(max_size=60).map(lambda noise: [noise]),
)


@given(
    lines=lines,
    chance=st.integers(0, 2**64),
    tail=st.sampled_from([TAIL, b""]),
    options=options,
)
@settings(max_examples=600, deadline=None)
def test_mutated_lines(path, lines, chance, tail, options):
    text = corrupt_text(b"\n".join(lines), random.Random(chance))
    check_like_reference(path, text + tail, **options)


def test_the_corpus_holds_good_and_bad_lines(path):
    """Otherwise agreement would say little."""
    good = 0
    for line in CORPUS:
        try:
            reference.svmlight_records(line + TAIL)
        except reference.BadLineError:
            continue
        good += 1
    assert good >= 10
    assert len(CORPUS) - good >= 20


@pytest.mark.parametrize(
    "text",
    [
        b"1" * 300_000,
        b"1 1:0." + b"1" * 300_000,
        b"1 1:" + b"0" * 300_000 + b"1",
        b"1 " + b"0" * 300_000 + b"7:1",
        b"1 " + b" " * 300_000 + b"7:1",
        b"1 1:1" + b"#" * 300_000,
        b"\n" * 300_000 + b"1 1:1",
        b"1 1:1.000000059604644775390625\n" * 5_000,
        b"1 1:1\r" * 50_000,
        b"qid:" * 80_000,
        b"\x00" * 300_000,
        b"1 1:1e" + b"9" * 300_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_long_runs_of_one_thing(path, text):
    check_like_reference(path, text, n_threads=2, n_features=9)


@given(
    text=st.text("0123456789.:- e", max_size=30).map(str.encode),
    at=st.integers(0, 9),
)
@settings(max_examples=500, deadline=None)
def test_numbers_eight_digits_at_a_time(text, at):
    """Against the same rules, digit by digit."""
    padded = b"\x80:0" * 3 + b"/" * at + text + b";" * (95 - len(text) - at)
    words = np.frombuffer(padded, np.uint64)
    i = 9 + at
    digits = len(text) - len(text.lstrip(b"0123456789"))
    expected = (digits, int(text[:digits])) if 1 <= digits <= 15 else (0, 0)
    assert scan_digits(words, np.uint64(i)) == expected

    rest = text[digits:]
    after = 0
    if rest[:1] == b".":
        after = len(rest) - 1 - len(rest[1:].lstrip(b"0123456789"))
    whole = int(text[:digits] or b"0")
    found = scan_plain(np.frombuffer(padded, np.uint8), words, np.uint64(i))
    if digits in (0, *range(8, 40)) or (digits if whole else 0) + after > 18:
        assert found[0] == 0
    else:
        end = i + digits + (1 + after if rest[:1] == b"." else 0)
        number = int(text[:digits] + rest[1 : 1 + after])
        assert found == (end, number, after)
