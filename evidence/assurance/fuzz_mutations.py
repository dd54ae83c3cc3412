"""How the fuzzer corrupts a valid input: bytes, text tokens, members of a zip, command lines."""

import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from dplasso.files.archive import digest, npy
from evidence.assurance.hostile import FLOATS

Mutate = Callable[[bytes, random.Random], bytes]

TOKENS = (
    *(b"0", b"-0", b"1", b"-1", b"+1", b"1.5", b".", b"1.", b".5", b"1e5", b"1e-400", b"1e400"),
    *(b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"0x1p3", b"1_0", b"1e", b"1e+", b"--1"),
    *(b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"1" * 400),
    *(b"2147483647", b"2147483648", b"3.4028235e38", b"3.4028236e38", b"1.7976931348623159e308"),
    *(b"4.9e-324", b"2.4703282292062327e-324", b"0.1000000000000000055511151231257827"),
    *(repr(number).encode() for number in FLOATS),
    *(b":", b"::", b"1:", b":1", b"1:1", b"0:1", b"1:1 1:1", b"2:1 1:1", b"qid:", b"qid:7", b"#"),
    *(b"\n", b"\r\n", b"\r", b"\x00", b"\x0b", b"\x0c", b"\xa0", b"\xff", b"\xef\xbb\xbf"),
    *(b"\xe2\x80\xa8", b"\xd9\xa1", b"\xc2\xb2", b"\t", b" ", b"PK\x03\x04", b"\x1f\x8b"),
)
_HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 10**18, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308, ""),
    *("inf", "nan", "\x00", "é", "a" * 300, [], {}, [[]], {"float": "nan"}, {"labels": {}}),
    *([1, 2, 3], {"float": "inf"}, {"labels": {"dtype": "O", "values": [0, 1]}}, "<V8", 1e-320, 3),
    *({"dtype": "<i8"}, {"dtype": "|O", "values": [0, 1]}, {"dtype": "<f8", "values": [0, 1]}),
)
_ARRAYS: tuple[np.ndarray, ...] = (
    np.zeros(0, np.int64),
    np.array([0]),
    np.array(0),
    np.array([[1, 2], [3, 4]]),
    np.array([-1, 2**62, 2**63 - 1]),
    np.array([2**64 - 1], np.uint64),
    np.array([np.nan, np.inf, -np.inf]),
    np.array(FLOATS),
    np.array(["a", "\x00"]),
    np.array([b"csr"]),
    np.array([1 + 2j]),
    np.array([True, False]),
    np.array(["2020-01-01"], "M8[D]"),
    np.zeros(2, [("a", "i4"), ("b", "f8")]),
    np.array([1, 2, 3], ">i4"),
    np.arange(3, dtype=np.float16),
    np.arange(3, dtype=np.longdouble),
)


def corrupt_bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip, set, drop, repeat, move or insert bytes, one to four times."""
    content = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        size = len(content)
        at = rng.randrange(size + 1)
        kind = rng.randrange(8)
        length = min(rng.choice((1, 1, 2, 4, 16, 64, size)), size - at)
        if kind == 0 and at < size:
            content[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < size:
            content[at] = rng.randrange(256)
        elif kind == 2:
            del content[at : at + length]
        elif kind == 3:
            content[at:at] = content[at : at + length]
        elif kind == 4:
            content[at:at] = rng.choice(TOKENS)
        elif kind == 5:
            del content[at:]
        elif kind == 6:
            content[at:at] = rng.randbytes(rng.choice((1, 4, 8)))
        else:
            other = rng.randrange(size + 1)
            content[at : at + length] = content[other : other + length]
    return bytes(content)


def corrupt_text(data: bytes, rng: random.Random) -> bytes:
    """Replace, drop, repeat or swap words of text; sometimes bytes."""
    if rng.random() < 0.3:
        return corrupt_bytes(data, rng)
    lines = [line.split(b" ") for line in data.split(b"\n")]
    for _ in range(rng.choice((1, 1, 2, 3))):
        line = rng.choice(lines)
        at = rng.randrange(len(line))
        kind = rng.randrange(6)
        if kind == 0:
            line[at] = rng.choice(TOKENS)
        elif kind == 1:
            index, _, value = line[at].partition(b":")
            line[at] = rng.choice(((index, rng.choice(TOKENS)), (rng.choice(TOKENS), value)))[0]
            line[at] += b":" + rng.choice((value, rng.choice(TOKENS)))
        elif kind == 2:
            line.insert(at, rng.choice(TOKENS))
        elif kind == 3 and len(line) > 1:
            del line[at]
        elif kind == 4:
            other = rng.randrange(len(line))
            line[at], line[other] = line[other], line[at]
        else:
            line.insert(at, line[rng.randrange(len(line))])
    return b"\n".join(b" ".join(line) for line in lines)


def members_of(data: bytes) -> dict[str, bytes]:
    """Unpack a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Pack a zip; its CRCs fit."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return buffer.getvalue()


def corrupt_json(text: bytes, rng: random.Random) -> bytes:
    """Replace, drop or add a value somewhere in a JSON text."""
    try:
        document = json.loads(text)
    except ValueError:
        return corrupt_bytes(text, rng)
    holder: Any = {"": document}
    place: Any = ""
    while isinstance(holder[place], dict | list) and holder[place] and rng.random() < 0.75:
        holder = holder[place]
        place = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    kind = rng.randrange(4)
    if kind == 0 and holder is not document and place != "":
        del holder[place]
    elif kind == 1 and isinstance(holder[place], dict):
        holder[place][rng.choice(("extra", "version", "n_iter"))] = rng.choice(_HOSTILE)
    else:
        holder[place] = rng.choice(_HOSTILE)
    return json.dumps(document if place != "" else holder[""]).encode()


def corrupt_array(content: bytes, rng: random.Random) -> bytes:
    """Change a .npy member: its numbers, its type, or bytes of it."""
    kind = rng.randrange(4)
    if kind == 0:
        return npy(rng.choice(_ARRAYS))
    try:
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except Exception:
        return corrupt_bytes(content, rng)
    if kind == 1 and array.size and array.dtype.kind in "iuf":
        array = array.copy()
        at = rng.randrange(array.size)
        hostile = rng.choice((0, 1, -1, 2**31 - 1, -(2**31), 100, 3))
        with np.errstate(all="ignore"):
            array.reshape(-1)[at] = np.array(hostile).astype(array.dtype)
        return npy(array)
    if kind == 2 and array.ndim == 1:
        return npy(rng.choice((array[:-1], np.concatenate([array, array]), array[::-1].copy())))
    return corrupt_bytes(content, rng)


def corrupt_npz(data: bytes, rng: random.Random) -> bytes:
    """Change a member and pack anew, so that no CRC tells; sometimes bytes of the zip itself."""
    if rng.random() < 0.25:
        return corrupt_bytes(data, rng)
    members = members_of(data)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(members))
        kind = rng.randrange(8)
        if kind == 0:
            del members[name]
        elif kind == 1:
            members[rng.choice(("y.npy", "labels.npy", "extra.npy", "data", "../x.npy"))] = members[
                name
            ]
        elif kind == 2:
            members[name] = members[rng.choice(list(members))]
        else:
            members[name] = corrupt_array(members[name], rng)
        if not members:
            break
    return packed(members, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def corrupt_archive(data: bytes, rng: random.Random) -> bytes:
    """Change the header's JSON or an array of a file of ours; half the time mend the checksum."""
    if rng.random() < 0.2:
        return corrupt_npz(data, rng)
    members = members_of(data)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(("header.npy", "header.npy", *members))
        if name == "header.npy":
            text = np.lib.format.read_array(io.BytesIO(members[name])).tobytes()
            members[name] = npy(np.frombuffer(corrupt_json(text, rng), np.uint8))
        else:
            members[name] = corrupt_array(members[name], rng)
    if rng.random() < 0.7:
        plain = {name.removesuffix(".npy"): part for name, part in members.items()}
        plain.pop("sha256", None)
        members["sha256.npy"] = npy(np.frombuffer(digest(plain), np.uint8))
    return packed(members)


def corrupt_folder(data: bytes, rng: random.Random) -> bytes:
    """Change a file of a folder, packed as a zip for the fuzzer's sake."""
    members = members_of(data)
    name = rng.choice(list(members))
    kind = rng.randrange(8)
    if kind == 0:
        del members[name]
    elif name.endswith(".json") and kind < 7:
        members[name] = corrupt_json(members[name], rng)
    else:
        members[name] = rng.choice((corrupt_array, corrupt_bytes))(members[name], rng)
    return packed(members)


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_NUMBERS = (
    *_split(
        "0 -1 1 2 0.5 1e-9 nan inf -inf 1e309 1e-320 abc 0x10 １ 1_000 99999999999999999999 -0 "
        "+3 1e-300 1,2 none 7"
    ),
    *("", " "),
)
_FILES = (
    *_split(
        "train.svm test.svm data.npz model.npz kept missing.svm . - team.ledger data.store "
        "/dev/null new.npz new.json none/x.npz train.svm.gz ü.svm empty"
    ),
    *("", "a\nb"),
)
_WORDS = (
    *_split(
        "frank-wolfe lasso sparse standard bucket heap argmax noisy-max big-little paper "
        "exponential add-remove replace-one 0,1 -1,1 1,-1 a,b 1 , -- é"
    ),
)
_OPTIONS = {
    "number": _split(
        "--epsilon --delta --feature-bound --features --seed --l1-radius --drift-tol "
        "--checkpoint-seconds"
    ),
    "count": _split("--n-iter --max-weights --jobs"),
    "file": _split("--labels --test --model --checkpoint --out --output --ledger"),
    "word": _split(
        "--dataset --method --solver --selector --mechanism --neighbors --classes --bogus"
    ),
    "flag": _split(
        "--binarize --zero-based --no-intercept --force --json --resume --help -h --proba --verify"
    ),
}
# No counts that would honestly keep the machine busy for minutes.
_COUNTS = ("0", "-1", "1", "3", "40", "1e3", "nan", "", "5000", "1000000000000", "9" * 30, "2.5")


def corrupt_command(data: bytes, rng: random.Random) -> bytes:
    """Add, drop, repeat or change arguments of a command line (a JSON list)."""
    arguments = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        kind = rng.randrange(6)
        at = rng.randrange(1, len(arguments) + 1)
        if kind == 0 and len(arguments) > 1:
            del arguments[min(at, len(arguments) - 1)]
        elif kind == 1:
            arguments.insert(at, rng.choice((*_NUMBERS, *_FILES, *_WORDS)))
        elif kind == 2 and at < len(arguments):
            arguments[at] = rng.choice((*_NUMBERS, *_FILES, *_WORDS))
        else:
            sort = rng.choice(list(_OPTIONS))
            name = rng.choice(_OPTIONS[sort])
            values = {"number": _NUMBERS, "count": _COUNTS, "file": _FILES, "word": _WORDS}
            arguments += [name] if sort == "flag" else [name, rng.choice(values[sort])]
    return json.dumps(arguments).encode()
