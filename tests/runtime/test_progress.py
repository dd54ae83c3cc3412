"""The progress bar: on standard error, and gone when it should be."""

from dplasso.runtime.progress import progress_bar


def test_it_counts_on_standard_error(capsys):
    with progress_bar("counting") as progress:
        for done in range(1, 5):
            progress(done, 4)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "counting" in shown.err
    assert "4/4" in shown.err
