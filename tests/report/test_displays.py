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
    Ledger,
    private_score,
)
from dplasso.errors import MissingExtraError
from dplasso.ledger import create_ledger, share_of
from dplasso.report.bars import Bar, bars_as_html, reach_of
from dplasso.report.displays import WeightsDisplay, budget_bars

mpl.use("Agg")
RNG = np.random.default_rng(0)
NAMES = ["age", "a name so long that it does not fit into any picture " * 2, *"cdefgh"]
X = (RNG.random((900, 8)) < 0.4).astype(float)
Y = (X[:, 0] > X[:, 2]).astype(int)


@pytest.fixture(scope="module")
def paid(tmp_path_factory):
    """A model that a ledger has paid for, and the ledger."""
    ledger = tmp_path_factory.mktemp("paid") / "team.ledger"
    create_ledger(ledger, 3.0, 1e-5, dataset="visits")
    model = DPLogisticRegression(1.0, classes=[0, 1], ledger=Ledger(ledger, None, "autumn"))
    model.fit(X, Y)
    score = private_score(model, X, Y, 1.0, ledger=ledger)
    yield model, ledger, score
    pyplot.close("all")


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


def test_the_budget_is_what_the_ledger_says(paid):
    model, ledger, _ = paid
    budget = Ledger(ledger).budget()
    bars = budget_bars(budget, model.model_.digest)
    shares = [share_of(budget, entry.charge) for entry in budget.entries]
    assert [bar.value for bar in bars] == pytest.approx([*shares, 1 - sum(shares)])
    assert [bar.name for bar in bars] == ["fit 1 (this model)", "score 2", "left"]


def test_before_a_fit_and_without_matplotlib(paid, monkeypatch):
    with pytest.raises(NotFittedError):
        DPLogisticRegression().plot_weights()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dplasso.plot.'"):
        paid[0].plot_weights()


def test_the_same_bars_as_html(paid):
    bars = [Bar("<b>", -1.0, -1.5, -0.5, "one"), Bar("two", 0.5, 0.5, 0.5, "1", "doubtful")]
    assert reach_of(bars) == (-1.5, 0.5)
    page = bars_as_html(bars)
    assert "&lt;b&gt;" in page
    assert page.count('class="negative" x="50.0" y="2" width="100.0"') == 1
    assert page.count('class="doubtful" x="150.0" y="2" width="50.0"') == 1
    assert page.count("M0.0 6H100.0") == page.count(" 6H") == 1
