import dplasso
from dplasso.data.files import read_data


def test_one_label_per_row(run, model, held_out):
    result = run("predict", model, held_out, "--binarize")
    assert result.exit_code == 0, result.output
    fitted, data = dplasso.load(model), read_data(held_out)
    data.X.data[:] = 1
    expected = [str(int(label)) for label in fitted.predict(data.X)]
    assert result.stdout.split("\n") == [*expected, ""]
    assert len(expected) == 300
    assert len(set(expected)) == 2


def test_probabilities_to_a_file(run, model, held_out, tmp_path):
    out = tmp_path / "probabilities.txt"
    result = run("predict", model, held_out, "--binarize", "--proba", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == [out]
    fitted, data = dplasso.load(model), read_data(held_out)
    data.X.data[:] = 1
    expected = fitted.predict_proba(data.X)[:, 1]
    written = [float(line) for line in out.read_text().splitlines()]
    assert max(abs(expected - written)) < 1e-8


def test_rows_with_fewer_columns_are_widened(run, model, tmp_path):
    narrow = tmp_path / "narrow.svm"
    narrow.write_text("+1 1:1\n-1 2:1\n")
    assert run("predict", model, narrow).stdout == "1\n-1\n"


def test_zero_based_columns(run, model, tmp_path):
    one_based, zero_based = tmp_path / "one.svm", tmp_path / "zero.svm"
    one_based.write_text("+1 1:1 5:1\n-1 2:1 9:1\n")
    zero_based.write_text("+1 0:1 4:1\n-1 1:1 8:1\n")
    first = run("predict", model, one_based, "--proba")
    second = run("predict", model, zero_based, "--proba", "--zero-based")
    assert first.exit_code == second.exit_code == 0
    assert first.stdout == second.stdout
