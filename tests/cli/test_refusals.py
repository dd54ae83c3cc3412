"""Bad input: one clear sentence, an exit code that is not 0, nothing trained, nothing written."""

import re
import shlex
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array, save_npz
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from cli.conftest import charged_to, done, every_command, new_ledger, refused, run_command
from dplasso import DPLogisticRegression, save

ROWS = {
    "number.svm": "+1 1:1\n-1 2:x\n",
    "nan.svm": "+1 1:1\n-1 2:nan\n",
    "one.svm": "+1 1:1\n+1 2:1\n",
    "two.svm": "1 1:1\n2 2:1\n",
    "strange.svm": "+1 1:1\n7 2:1\n",
    "wide.svm": "+1 1:1 31:1\n",
    "words.svm": "yes 1:1\nno 2:1\n",
    "part-1.svm": "+1 1:1\n-1 2:1\n",
    "part-2.svm": "+1 1:1\n-1 2:1\n",
    "numbers.svm": "1.5 1:1\n2.25 2:1\n7.0 1:1\n",
    "reviews.csv": 'id,body,y\n1,"Good, good film",pos\n2,bad,neg\n',
    "list.json": "[1]",
    "none.csv": "city,y\n",
    "city.json": '{"label": "y", "parts": [{"kind": "hashed", "columns": ["city"], "bits": 2}]}',
    "h.json": '{"label": "back", "parts": [{"kind": "hashed", "columns": ["ward"], "bits": 4}]}',
    "age.csv": "name,weight\nage,1\n",
    "far.csv": "name,weight\n30,1\n",
    "taken": "older",
}

FIT, GOOD = "fit none.svm --epsilon 1", "fit part-1.svm --epsilon 1"
PAID = f"{FIT} --model m.npz --ledger team.ledger"
# A command line => what the sentence says; a 2 in front is the exit code of wrong usage. Braces
# hold values that are tried one by one.
TABLE = """
fit number.svm --epsilon 1 --model m.npz => number.svm | line 2
fit nan.svm --epsilon 1 => line 2 | entry 1 | NaN
fit two.svm --epsilon 1 --classes no,yes => no,yes | numbers

fit none.svm --epsilon -1 => error: --epsilon
2 PAPER --n-iter nan => --n-iter
FIT --prior gone.npz => gone.npz
GOOD --prior age.csv --model age.csv --force => age.csv
PAPER --public-rows two.svm => --public-rows cannot be combined with --method frank-wolfe
fit part-1.svm --epsilon 1 --public-{rows|data} part-1.svm => part-1.svm: its rows are private
PAPER --drift-tol {-1|little} => error: --drift-tol
FIT --method ridge => --method must be one of logistic, linear, lasso, frank-wolfe, got 'ridge'
FIT --n-iter 3 => --n-iter cannot be combined with --method logistic, only with --method frank-wolfe
FIT --method lasso --row-norm unit => --row-norm cannot be combined with --method lasso
2 FIT --method logistic --max-weights {1.5|many} => --max-weights
FIT --row-norm 2 --infer-share 0.3 => give --infer too
FIT --infer all => --infer needs --row-norm to be a number
FIT --method lasso --infer all => --infer cannot be combined with --method lasso
fit numbers.svm --epsilon 1 --method logistic => the labels are numbers with fractions
FIT --method linear => --target-bounds is missing
FIT --target-bounds 0,9 --method logistic => predicts classes | use linear or lasso
FIT --target-bounds 0,9 --classes 0,1 => a regression has no classes
FIT --target-bounds 9,0 => two finite numbers
2 FIT --target-bounds 0;9 => is not an interval
2 FIT --person-column p => --person-column needs --rows-per-person M
GOOD --rows-per-person 2 --person-column p => does not say which person each row belongs to

2 fit => Missing argument
2 fit part-1.svm => Missing option
2 fit part-1.svm --epsilon {much|1,0} => --epsilon | is not a number; write it with a decimal
2 GOOD --classes {1|1,1} => --classes 1 | name two or more different labels
2 GOOD --features 0 => --features
2 GOOD --seed -1 => --seed
2 train part-1.svm => No such command
fit words.svm --epsilon 1 => words.svm | line 1 | write labels as numbers

{GOOD --model|demo --out} {taken|taken/below} => taken
GOOD --model /proc/self/model.npz => /proc/self/model.npz
fit 'part-*.svm' --epsilon 1 --model part-2.svm --force => used by this command
predict model.npz 'part-*.svm' --out part-2.svm --force => used by this command
GOOD --model out --ledger team.ledger --checkpoint out => used by this command
GOOD --test wide.svm => wide.svm | line 1
GOOD --test strange.svm => strange.svm | row 2
GOOD --resume --checkpoint kept => kept: No such file
GOOD --checkpoint {part-1.svm --force|m.npz --model m.npz} => used by this command
GOOD --checkpoint taken --resume => not a dplasso checkpoint file | leave --resume out
GOOD --model model.npz --resume {--force|--checkpoint kept} => nothing to resume
2 GOOD --resume => --checkpoint
{predict model.npz part-1.svm --out|report model.npz --out|GOOD --checkpoint} taken => --force
predict model.npz t.parquet --schema city.json --out city.json --force => used by this command
predict model.npz train.store --out train.store/{header.json|new} --force => used by this command
{predict model.npz part-1.svm --out|report model.npz --out} team.ledger.key --force => its key
{show model.npz --plot|GOOD --model|GOOD --checkpoint} team.ledger{|.key} --force => its key
fit 'none-*.svm' --epsilon 1 => none-*.svm | no file matches
fit 'part-*.svm' part-2.svm --epsilon 1 => part-2.svm | named twice
evaluate model.npz strange.svm => strange.svm | not one of the declared classes | row 2
evaluate model.npz part-1.svm --metric auc => needs --epsilon

{predict|evaluate} short.npz part-1.svm => short.npz
show gone.npz => No such file
show part-1.svm => is not a dplasso model file
report model.npz --out model.npz --force => used by this command

2 FIT --ledger team.ledger => --ledger needs --model
plan --epsilon 2 --rows 100 --score 1.5 => must be a share
2 plan --epsilon 1 --rows 300 --columns 5 --infer --method lasso => --infer is for the methods
2 plan --epsilon 1 --rows 300 --effect 1 => give --infer too
budget --epsilon 1 --method linear --n-classes 3 => --n-classes cannot be combined with
demo --epsilon 0 --out new => --epsilon

audit --method guess => --method must be one of
audit --epsilon inf => nothing to audit
audit --mechanism other => mechanism
audit --runs 3 => --runs must be at least
audit --method logistic --solver standard => --solver is not for --method logistic

PAID --seed 1 => --seed | not private
PAID --method frank-wolfe --mechanism paper => --mechanism paper | not private
PAID --neighbors replace-one => --neighbors replace-one | add up
PAID --dataset vistis => 'vistis' | 'visits'
PAID --delta 1e-9 --epsilon 8 => epsilon 8 | left
fit nan.svm --epsilon 1 --model m.npz --ledger team.ledger => line 2
GOOD --model team.ledger --ledger team.ledger --force => used by this command
{FIT --model m.npz --ledger|ledger show|ledger plan} gone => there is no ledger | gone
{FIT --model m.npz --ledger|ledger show|ledger plan} taken => is not a dplasso ledger | taken
ledger name team.ledger other => a name cannot be changed
ledger init team.ledger --epsilon 9 --delta 1e-5 => exists already
ledger init l --epsilon {inf|0} --delta 1e-5 => --epsilon
ledger init l --epsilon 1 --delta {0|2} => --delta
ledger init no/l --epsilon 1 --delta 1e-5 => no folder
ledger init l --epsilon 3 --delta 1e-5 --rows-per-person 0 => --rows-per-person must be at least 1
2 ledger spend team.ledger --epsilon 0.1 --rows-per-person 0 => --rows-per-person
ledger spend team.ledger --epsilon inf => not private
ledger spend team.ledger --epsilon 9 => cannot pay
ledger spend team.ledger --epsilon 1 --purpose ' ' => --purpose

convert nan.npz --labels y.npy s --binarize => entry 2 is not a finite number
2 convert part-1.svm s --memory=2 => is too little
2 convert part-1.svm s {--memory=-2GB|--memory=} => is not an amount of memory
data info folder => is not a dplasso store
fit train.store --epsilon 1 --binarize => --binarize cannot be combined with a store
fit train.store part-1.svm --epsilon 1 => so pass it alone
fit train.store --epsilon 1 --features 31 => 30 columns, but --features is 31
fit {/nowhere/a.store|/nowhere/p*.store} --epsilon 1 --cluster threads => no store or folder
fit {no*.store|stores/../no[1-9].store} --epsilon 1 --cluster threads => no store or folder
2 fit stores --epsilon 1 --binarize --cluster threads => --binarize cannot be combined
fit stores --epsilon 1 --features 31 --cluster threads => 30 columns, not 31
fit stores --epsilon 1 => is a folder of stores | --cluster threads
fit train.store --epsilon 1 --person-column p --rows-per-person 1 => --person-column cannot be

convert t.parquet s => is a table and needs a schema
fit t.parquet --epsilon 1 => is a table and needs a schema | dplasso schema draft
convert t.parquet s --schema city.json --zero-based => cannot be combined with a table
fit t.parquet --epsilon 1 --schema city.json --zero-based => cannot be combined with a table
{convert part-1.svm s|fit part-1.svm --epsilon 1} --schema city.json => part-1.svm is not a table
2 {convert part-1.svm s|GOOD} --label-column y => --label-column is for tables
convert t.parquet s --schema reviews.csv => not a JSON file
fit visits.csv --epsilon 1 --schema schema.json --label-column age => both label and feature
predict visits.npz part-1.svm => the model was trained on a table encoded by its schema
predict visits.npz visits.csv --schema other.json => is not the schema that the model was
predict visits.npz hashed.store => was encoded by a different schema than
predict visits.npz visits.csv --binarize => trained without --binarize; leave it out
predict model.npz visits.csv => was trained on numbered columns, and
fit t.parquet --epsilon 1 --schema city.json --features 9 => the schema makes 5 columns
fit none.csv --epsilon 1 --schema city.json => none.csv holds no records
fit {gone.csv|gone.cvs|gone} --epsilon 1 --schema city.json => no such file
{fit gone.csv --epsilon 1|convert gone.csv s|predict model.npz gone.csv} => no such file
fit folder --epsilon 1 --schema city.json => folder is not a dplasso store
{fit tables --epsilon 1|schema draft tables} => is a folder of tables | 'tables/*.parquet'
predict model.npz list.json => cannot be read | .jsonl
{predict|evaluate} steps.npz reviews.csv => holds a pipeline | dplasso.load
schema draft reviews.csv --label-column x => x
"""


def expanded(line):
    """Return a case for each value in braces."""
    values = re.search(r"\{([^{}]*)\}", line)
    if values is None:
        return [line]
    cases = (line.replace(values[0], value, 1) for value in values[1].split("|"))
    return [one for case in cases for one in expanded(case)]


CASES = [case for line in TABLE.splitlines() if line for case in expanded(line)]
SHORT = {
    "FIT ": f"{FIT} ",
    "PAPER ": f"{FIT} --method frank-wolfe ",
    "GOOD ": f"{GOOD} ",
    "PAID ": f"{PAID} ",
}


def split(case):
    """Return the arguments of a case and the words of its sentence."""
    line, _, words = case.removeprefix("2 ").partition(" => ")
    for name, command in SHORT.items():
        line = line.replace(name, command)
    return shlex.split(line), words.split(" | ")


@pytest.fixture(scope="module")
def world(train, model, stores, visits, schema, tmp_path_factory):
    """Give a folder with one file of each kind."""
    folder = tmp_path_factory.mktemp("world")
    for name, text in ROWS.items():
        (folder / name).write_text(text)
    words = CountVectorizer(vocabulary=["good", "bad"])
    pipeline = make_pipeline(words, DPLogisticRegression(classes=[0, 1]))
    save(pipeline.fit(["good", "bad"], [1, 0]), folder / "steps.npz")
    whole = model.read_bytes()
    (folder / "model.npz").write_bytes(whole)
    (folder / "short.npz").write_bytes(whole[: len(whole) // 2])
    save_npz(folder / "nan.npz", csr_array(np.array([[1.0, 0.0], [2.0, np.nan]])))
    np.save(folder / "y.npy", np.array([0, 1]))
    pq.write_table(pa.table({"city": ["Rome", "Oslo"], "y": [1, 0]}), folder / "t.parquet")
    (folder / "folder").mkdir()
    (folder / "tables").mkdir()
    shutil.copy(folder / "t.parquet", folder / "tables")
    new_ledger(folder / "team.ledger", 3, 1e-5, "visits")
    shutil.copytree(stores, folder / "stores")
    done("convert", train, folder / "train.store", "--features", 30)
    shutil.copy(visits, folder)
    shutil.copy(schema, folder)
    (folder / "other.json").write_text(schema.read_text().replace("heart", "brain"))
    done("convert", visits, folder / "hashed.store", "--schema", folder / "h.json")
    fit = ("fit", visits, "--schema", schema, "--epsilon", "50", "--classes", "no,yes")
    fitted = done(*fit, "--model", folder / "visits.npz")
    assert "taken from the file" not in fitted.output
    return folder, contents(folder)


def contents(folder):
    return {path: path.is_dir() or path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("case", CASES)
def test_refused_before_training(case, world, monkeypatch):
    def train(*_, **__):
        raise AssertionError("training started")

    monkeypatch.setattr("dplasso.cli.training.fit_estimator", train)
    folder, before = world
    monkeypatch.chdir(folder)
    arguments, words = split(case)
    refused(run_command(*arguments), *words, code=2 if case.startswith("2 ") else 1)
    assert contents(folder) == before
    assert charged_to(folder / "team.ledger") == []


@pytest.mark.parametrize(
    "case",
    [
        "fit one.svm --epsilon 1 --model m.npz => the label column holds | declare all",
        "fit two.svm --epsilon 1 --classes 0,1 --model m.npz => row 2 | 0 and 1",
        "fit part-1.svm --epsilon 1 --prior far.csv => column 30 | numbered from 0 to 1",
        "fit part-1.svm --epsilon 1 --public-data train.store => 30",
    ],
)
def test_refused_by_the_fit(case, world, monkeypatch):
    folder, before = world
    monkeypatch.chdir(folder)
    arguments, words = split(case)
    refused(run_command(*arguments), *words)
    assert contents(folder) == before


# --- addresses that hold a secret -----------------------------------------------------------------


SECRET = "s3://AKIAEXAMPLE:wJalrXUtn@bucket/a"
COMMANDS = every_command()


def options_of(words):
    """Return the options of a command, as help names them."""
    told = done(*words, "--help").stdout
    if "--help-all" in told:
        told = done(*words, "--help-all").stdout
    names = re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", told)
    return {*names} - {"-h", "--help", "--help-all"}


def test_there_are_commands_with_options():
    assert ("ledger", "add") in COMMANDS
    assert {"--model", "--checkpoint", "--ledger", "--prior", "--schema"} <= options_of(["fit"])
    assert "--purpose" in options_of(["ledger", "spend"])


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_secret_in_any_argument_or_option_is_refused_and_not_shown(words):
    texts = {(SECRET,), ("other", SECRET), ("--", SECRET)}
    for name in {"--no-such-option", *options_of(words)}:
        texts |= {(name, SECRET), (f"{name}={SECRET}",)}
    for given in texts:
        result = run_command(*words, *given)
        refused(result, "an address s3://... holds more than a scheme, a host and a path")
        assert not any(part in result.output for part in ("AKIA", "wJalr", "XUtn"))


@pytest.mark.parametrize("given", [(SECRET,), (f"--no-such-option={SECRET}",)])
def test_also_in_place_of_a_command(given):
    result = run_command(*given)
    refused(result, "an address s3://... holds more than")
    assert "XUtn" not in result.output


@pytest.mark.parametrize(
    "text",
    [
        *("s3://bucket/a.store", "--cluster=ray://head:10001", "file:///a b.store"),
        *("see https://wiki.example.org/fits for why", "no:address@all", "-1,1"),
    ],
)
def test_what_holds_none_is_taken(text):
    assert "holds more than" not in run_command(text).output
