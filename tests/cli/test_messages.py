"""What is wrong in a file is told by file, line, column: nothing of a record gets on the screen."""

import gc
import io
import json
import warnings
import zipfile

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from cli.conftest import done, run_command
from data.store.test_damage import forge
from dplasso import open_store
from secrets_in_messages import NUMBER, SECRETS, WORD, quotes_nothing, refused

SVMLIGHT = {
    "label": f"{WORD} 1:1",
    "undeclared label": (f"{NUMBER} 1:1", "--classes", "0,1"),
    "huge label": f"{NUMBER}e999 1:1",
    "no label": f"{NUMBER}:1",
    "query": f"1 qid:{WORD} 1:1",
    "index": f"1 {WORD}:1",
    "beyond the columns": (f"1 {NUMBER}:1", "--features", "5"),
    "not ascending": f"1 {NUMBER}:1 1:1",
    "value": f"1 1:{WORD}",
    "huge value": f"1 1:{NUMBER}e300",
    "gzip": b"\x1f\x8b" + WORD.encode() * 9,
    "no text": WORD.encode() + b"\xff\xfe 1:1",
    "one class": f"{NUMBER} 1:1",
}
CATEGORIES = {"kind": "categories", "column": "a", "categories": ["x", "y"]}
SCHEMA = {
    "label": "y",
    "parts": [
        CATEGORIES | {"unknown": "error", "missing": "error"},
        {"kind": "number", "column": "b", "bound": 5.0},
        {"kind": "text", "column": "t", "bits": 3},
    ],
}
GOOD = {"a": "x", "b": 1.5, "t": "words", "y": 0, "p": "one"}
# A column and values of it, of which one is wrong.
VALUES = {
    "category": ("a", ["x", WORD]),
    "missing category": ("a", [WORD, None]),
    "category of two kinds": ("a", [WORD, 5]),
    "category of lists": ("a", [[WORD], [WORD]]),
    "category of keys": ("a", [{WORD: NUMBER}, {WORD: NUMBER}]),
    "number": ("b", [1, WORD]),
    "number of keys": ("b", [{WORD: NUMBER}, {WORD: NUMBER}]),
    "huge number": ("b", [10**30 + NUMBER, 1]),
    "text": ("t", ["words", NUMBER]),
    "text of lists": ("t", ["words", [WORD]]),
    "label": ("y", [0, WORD]),
    "undeclared label": ("y", [0, NUMBER]),
    "label of lists": ("y", [[WORD], [WORD]]),
    "label of two kinds": ("y", [True, NUMBER]),
    "missing label": ("y", [NUMBER, None]),
    "infinite label": ("y", [float(NUMBER), float("inf")]),
    "person": ("p", [WORD, NUMBER + 0.5]),
    "missing person": ("p", [WORD, None]),
    "person of lists": ("p", [[WORD], [WORD]]),
}
# Not refused by all readers: numbers are words in CSV, and texts read anything.
MAY_PASS = {"text", "text of lists", "huge number", "person", "label of two kinds"}
BROKEN = {
    "no header.csv": f"{WORD},{NUMBER},{WORD}\n{WORD},1,0\n",
    "too many fields.csv": f"a,b,t,y,p\nx,1,words,0,one,{WORD}\n",
    "open quote.csv": f'a,b,t,y,p\nx,"1"{WORD},words,0,one\n',
    "latin.csv": f"a,b,t,y,p\nx,1,{WORD}\xe4,0,one\n".encode("latin-1"),
    "half.jsonl": f'{{"a": "{WORD}", "b": {NUMBER}\n',
    "list.jsonl": f'["{WORD}", {NUMBER}]\n',
    "other keys.jsonl": f'{{"{WORD}": {NUMBER}}}\n',
    "text.parquet": f"PAR1{WORD}{NUMBER}PAR1",
    "text.arrow": f"ARROW1{WORD}{NUMBER}ARROW1",
}


def commands(data, model, *options):
    """Return every command that reads data, as arguments."""
    given = dict(zip(options[::2], options[1::2], strict=True))

    def told(*names):
        return [word for name in names if name in given for word in (name, given[name])]

    read, person = told("--schema", "--features"), told("--person-column")
    fit = [data, "--epsilon", "1", *read, *person, *told("--classes")]
    fit += ["--rows-per-person", "1"] if person else []
    score = told("--schema")
    return {
        "fit": ["fit", *fit],
        "regression": ["fit", data, "--target-bounds", "0,1", "--epsilon", "1", *read],
        "convert": ["convert", data, data.with_suffix(".store"), *read, *person],
        "evaluate": ["evaluate", model, data, *score],
        "private score": ["evaluate", model, data, "--epsilon", "1", *score],
        "predict": ["predict", model, data],
        "draft": ["schema", "draft", data],
        "info": ["data", "info", data],
    }


# Read tables as fit does.
ALIKE = ("regression", "private score", "info")


@pytest.fixture(autouse=True, scope="module")
def what_was_there_is_not_looked_through():
    """Leave what other tests have made out of the collections below."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def none_quotes(data, model, *options, refused_by=("fit", "convert"), without=()):
    """Run all commands on some data, but for some, and look at what they say."""
    results = {}
    with warnings.catch_warnings():
        # What held a file open when it was refused may be collected after the file.
        warnings.simplefilter("ignore", ResourceWarning)
        for name, arguments in commands(data, model, *options).items():
            if name not in without:
                results[name] = run_command(*arguments)
                results[name].exc_info = None
        gc.collect()
    for name, result in results.items():
        assert isinstance(result.exception, SystemExit | None), (name, result.exception)
        # A draft proposes categories that it has found, and info counts the labels of a store.
        told = result.stderr if result.exit_code == 0 else result.output
        quotes_nothing(f"{name}: {told}")
        if name in refused_by:
            assert result.exit_code == 1, (name, result.output)


@pytest.mark.parametrize("case", SVMLIGHT)
def test_svmlight(model, tmp_path, case):
    text, *options = SVMLIGHT[case] if isinstance(SVMLIGHT[case], tuple) else (SVMLIGHT[case],)
    data = tmp_path / "data.svm"
    data.write_bytes(text if isinstance(text, bytes) else f"{text}\n".encode())
    late = ("fit",) if case in ("undeclared label", "one class") else ("fit", "convert")
    none_quotes(data, model, *options, refused_by=late)


@pytest.fixture(scope="module")
def table_model(tmp_path_factory):
    """Give a schema, and a model of tables."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "schema.json").write_text(json.dumps(SCHEMA))
    rows = [GOOD | {"y": k % 2, "a": "xy"[k % 2]} for k in range(40)]
    (folder / "good.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fit = ["fit", "good.jsonl", "--schema", "schema.json", "--epsilon", "9", "--model", "m.npz"]
    given = [str(folder / one) if "." in one else one for one in [*fit, "--classes", "0,1"]]
    done(*given)
    return folder / "schema.json", folder / "m.npz"


def write_table(path, column, values):
    """Write two good rows but for one column; return None where the format cannot hold it."""
    table = {name: [GOOD[name]] * 2 for name in GOOD} | {column: values}
    frame = pandas.DataFrame(table, dtype=object)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".jsonl":
        rows = (dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        try:
            arrow = pa.table({name: pa.array(given) for name, given in table.items()})
        except (pa.ArrowException, OverflowError):
            return None
        write = pq.write_table if path.suffix == ".parquet" else feather.write_feather
        write(arrow, str(path))
    return path


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "feather"])
@pytest.mark.parametrize("case", VALUES)
def test_tables(table_model, tmp_path, case, suffix):
    schema, model = table_model
    data = write_table(tmp_path / f"data.{suffix}", *VALUES[case])
    if data is None:
        return
    people = ["--person-column", "p"] if VALUES[case][0] == "p" else []
    options = ["--schema", schema, "--classes", "0,1", *people]
    refused_by = () if case in MAY_PASS or people else ("fit",)
    none_quotes(data, model, *options, refused_by=refused_by, without=ALIKE)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_tables(table_model, tmp_path, name):
    schema, model = table_model
    data, content = tmp_path / name, BROKEN[name]
    data.write_bytes(content if isinstance(content, bytes) else content.encode())
    none_quotes(data, model, "--schema", schema, "--classes", "0,1", without=ALIKE)


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_damaged_tables(table_model, tmp_path, suffix):
    """Wherever a byte is wrong, whatever pyarrow makes of it."""
    schema, _ = table_model
    data = write_table(tmp_path / f"data.{suffix}", "t", [WORD, WORD])
    content, rng = bytearray(data.read_bytes()), np.random.default_rng(0)
    for place in rng.choice(len(content), 30, replace=False).tolist():
        damaged = content.copy()
        damaged[place] ^= 1 << int(rng.integers(8))
        data.write_bytes(damaged)
        told = run_command("convert", data, tmp_path / "s", "--schema", schema, "--force")
        quotes_nothing(told.stderr)


def archive(**arrays):
    """Return the bytes of an .npz, of two rows unless said otherwise."""
    X = sp.csr_array(np.array([[1.0, 0.0], [0.0, 2.0]]))
    parts = {"format": np.array(b"csr"), "shape": np.array([2, 2]), "y": np.array([0, 1])}
    parts |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    content = io.BytesIO()
    np.savez(content, **parts | arrays)
    return content.getvalue()


def damaged_header():
    """Return an .npz in which a length is wrong, so that data are taken for a header."""
    content = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive())) as whole, zipfile.ZipFile(content, "w") as other:
        for name in whole.namelist():
            data = whole.read(name)
            if name == "y.npy":
                data = b"\x93NUMPY\x01\x00\x40\x00" + f"{WORD} ".encode() * 9
            other.writestr(name, data)
    return content.getvalue()


ARCHIVES = {
    "complex": archive(data=np.array([NUMBER, 2.0j])),
    "objects": archive(data=np.array([WORD, {NUMBER}], dtype=object)),
    "nan": archive(data=np.array([NUMBER, np.nan])),
    "column": archive(indices=np.array([0, NUMBER])),
    "twice": archive(indptr=np.array([0, 2, 2]), indices=np.array([1, 1])),
    "pointers": archive(indptr=np.array([0, NUMBER, 2])),
    "labels": archive(y=np.array([0.0, NUMBER])),
    "words of labels": archive(y=np.array(["0", WORD])),
    "many labels": archive(y=np.full(3, NUMBER)),
    "objects of labels": archive(y=np.array([0, WORD], dtype=object)),
    "header": damaged_header(),
    "no archive": WORD.encode() * 99,
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_archives(model, tmp_path, case):
    data = tmp_path / "data.npz"
    data.write_bytes(ARCHIVES[case])
    none_quotes(data, model, "--classes", "0,1", refused_by=("fit",))


def test_stores(model, tmp_path):
    lines = "".join(f"{label} 1:{NUMBER % 97} 2:2\n" for label in (WORD, "neg", WORD, "neg"))
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps(GOOD | {"y": line.split()[0]}) + "\n" for line in lines.splitlines())
    )
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    store = tmp_path / "rows.store"
    done("convert", tmp_path / "rows.jsonl", store, "--schema", tmp_path / "schema.json")
    none_quotes(store, model, "--classes", "neg,pos", refused_by=("fit",))
    fit = ("fit", store, "--epsilon", "1", "--classes")
    quotes_nothing(done(*fit, "neg,pos", "--cluster", "threads", code=1).output)
    wrong, last = NUMBER % 2**31, 4 * (open_store(store).nnz - 1)
    forge(store, "rows.indices.npy", last, np.array(wrong, "<i4").tobytes())
    said = run_command(*fit, f"neg,{WORD}").output
    assert str(wrong) not in said
    assert "is damaged: row" in said
    header = (store / "header.json").read_text()
    for damaged in (header[:-20], header.replace('"size"', f'"{WORD}"'), header.replace("2", WORD)):
        (store / "header.json").write_text(damaged)
        refused(lambda: open_store(store))
    assert WORD in SECRETS
