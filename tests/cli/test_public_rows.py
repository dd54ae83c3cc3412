"""``--public-rows``: public rows without labels, and what is said of them."""

import pytest

import dplasso
from cli.conftest import charged_to, done, found, refused, run_command, said

FAST = ("--epsilon", 1)


@pytest.fixture
def fewer(train, tmp_path):
    """Rows that have no label that means anything."""
    lines = train.read_text().splitlines()[:60]
    path = tmp_path / "public.svm"
    path.write_text("\n".join("7 " + line.split(" ", 1)[1] for line in lines) + "\n")
    return path


def test_the_model_says_what_rows_it_used(train, fewer, tmp_path):
    model = tmp_path / "m.npz"
    report = found("fit", train, *FAST, "--public-rows", fewer, "--model", model)
    told = "60 public rows without labels (digest "
    assert report["privacy"]["public_rows"].startswith(told)
    assert dplasso.load(model).privacy_.public_rows.startswith(told)
    assert told in said("show", model)
    text = said("fit", train, *FAST, "--public-rows", fewer, "--explain")
    assert f"public rows {told}" in text
    assert "the people in these rows are not protected by this fit" in text


def test_the_ledger_notes_them(train, fewer, tmp_path):
    ledger = tmp_path / "l"
    done("ledger", "init", ledger, "--epsilon", 9, "--delta", 1e-5)
    paid = ("--ledger", ledger, "--model", tmp_path / "m.npz")
    done("fit", train, *FAST, "--public-rows", fewer, *paid)
    (entry,) = charged_to(ledger)
    assert entry.charge.prior.startswith("60 public rows without labels")
    assert "60 public rows without labels" in said("ledger", "show", ledger)


def test_a_lasso_uses_them(train, fewer):
    report = found("fit", train, *FAST, "--method", "lasso", "--public-rows", fewer)
    assert report["privacy"]["public_rows"].startswith("60 public rows")


def test_frank_wolfe_refuses_them(train, fewer):
    result = run_command("fit", train, *FAST, "--method", "frank-wolfe", "--public-rows", fewer)
    refused(result, "--public-rows cannot be combined with --method frank-wolfe")
