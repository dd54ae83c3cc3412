"""Pictures in Python: what they show, on which axes, and what they refuse."""

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
)
from dplasso.report.bars import Bar, bars_as_html, reach_of

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


def test_bars_as_html():
    bars = [Bar("<b>", -1.0, -1.5, -0.5, "one"), Bar("two", 0.5, 0.5, 0.5, "1", "doubtful")]
    assert reach_of(bars) == (-1.5, 0.5)
    page = bars_as_html(bars)
    assert "&lt;b&gt;" in page
    assert page.count('class="negative" x="50.0" y="2" width="100.0"') == 1
    assert page.count('class="doubtful" x="150.0" y="2" width="50.0"') == 1
    assert page.count("M0.0 6H100.0") == page.count(" 6H") == 1
