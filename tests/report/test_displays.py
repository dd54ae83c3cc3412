"""Pictures in Python: what they show, on which axes, and what they refuse."""

import re
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError

from dplasso import (
    DPFrankWolfeClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    WeightsDisplay,
    load,
)
from dplasso.model import write_model
from model.files import fitted, gradients, release_again

mpl.use("Agg")
RNG = np.random.default_rng(0)
NAMES = ["age", "a name so long that it does not fit into any picture " * 2, *"cdefgh"]
X = (RNG.random((900, 8)) < 0.4).astype(float)
Y = (X[:, 0] > X[:, 2]).astype(int)


def test_weights_as_bars_with_three_standard_errors():
    model = DPLogisticRegression(1.0).fit(pd.DataFrame(X, columns=NAMES), Y)
    figure, axes = pyplot.subplots()
    display = model.plot_weights(count=3, ax=axes)
    assert isinstance(display, WeightsDisplay)
    assert (display.ax_, display.figure_) == (axes, figure)
    top = model.top_features(3)
    assert [patch.get_width() for patch in axes.patches] == pytest.approx(list(top.values))
    assert [text.get_text()[:10] for text in axes.texts] == [name[:10] for name in top.index]
    assert all(len(text.get_text()) <= 68 for text in axes.texts)
    for bar, error in zip(display.bars, top.standard_error, strict=True):
        assert bar.high - bar.value == pytest.approx(3 * error)
    again = display.plot()
    assert again is display
    assert display.figure_ is not figure
    assert DPFrankWolfeClassifier(n_iter=3, l1_radius=2.0).fit(X, Y).plot_weights().bars
    numbers = DPLinearRegression(target_bounds=(0, 1)).fit(X, Y).plot_weights()
    assert "standard errors" in numbers.ax_.get_xlabel()
    pyplot.close("all")


def test_before_a_fit_and_without_matplotlib(monkeypatch):
    with pytest.raises(NotFittedError):
        DPLogisticRegression().plot_weights()
    model = DPLogisticRegression().fit(X, Y)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'dplasso.plot.'"):
        model.plot_weights()


def test_bars_as_html(tmp_path):
    write_model(fitted(names=["<b>", "two", "three", "four"]), tmp_path / "m.npz")
    release_again(tmp_path / "m.npz", gradients([[-1.0], [0.5], [0.1], [0.0]], standard_error=0.1))
    page = load(tmp_path / "m.npz")._repr_html_()
    assert "<th>&lt;b&gt;</th>" in page
    table = page.rpartition('class="bars"')[2].partition("</table>")[0]
    bar = r'<rect class="(\w+)" x="(.*?)" y="2" width="(.*?)" height="8"/><path d="M(.*?) 6H(.*?)"'
    # From -1.3 to 0.8, over 200.
    assert re.findall(bar, table) == [
        ("negative", "28.6", "95.2", "0.0", "57.1"),
        ("positive", "123.8", "47.6", "142.9", "200.0"),
        ("doubtful", "123.8", "9.5", "104.8", "161.9"),
    ]
