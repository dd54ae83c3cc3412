"""``fit`` says on the screen what its promise lacks, before it spends anything."""

from cli.conftest import done, run_command


def said_by(*arguments):
    """Return what a command says beside its result, in one line."""
    return " ".join(done(*arguments).stderr.split())


def test_fit_says_all_cautions_and_says_them_once(train):
    options = ("--epsilon", "1e9", "--delta", "0.01", "--method", "logistic")
    told = said_by("fit", train, *options)
    for words in ("caution (red): an epsilon of", "caution (red): a delta of", "caution (amber):"):
        assert told.count(words) == 1
    assert "warning" not in told
    options = ("--epsilon", "1", "--classes=-1,1", "--n-iter", "2")
    assert "caution" not in done("fit", train, *options).stderr
    assert "caution (red): not diff" in said_by("fit", train, *options, "--seed", "1")


def test_delta_is_held_against_the_rows_that_were_read(train):
    options = ("--epsilon", "1", "--classes=-1,1", "--n-iter", "2", "--delta", "2e-4")
    assert "caution (amber): a delta of 0.0002 is large" in said_by("fit", train, *options)


def test_a_fit_that_is_refused_has_been_told(train, tmp_path, monkeypatch):
    done("ledger", "init", tmp_path / "l", "--epsilon", "9", "--delta", "1e-5")

    def refuse(*_, **__):
        raise OSError("spent")

    monkeypatch.setattr("dplasso.ledger.charging.reserve", refuse)
    monkeypatch.setattr("dplasso.checkpoint.charge.reserve", refuse)
    options = ("--ledger", tmp_path / "l", "--model", tmp_path / "m.npz", "--epsilon", "4")
    result = run_command("fit", train, *options, "--classes=-1,1", "--n-iter", "2")
    assert result.exit_code == 1
    told = " ".join(result.stderr.split())
    assert "error: spent" in told
    assert told.index("caution (amber): an epsilon of 4") < told.index("error: spent")
