"""A number's effect as one curve: what it adds to the margin, and the noise in it."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from cli.conftest import found, said
from dplasso import DPLinearRegression, DPLogisticRegression, PublicEncoder, load
from schemas import Categories, Levels, Schema

mpl.use("Agg")
SCHEMA = Schema(
    (
        Levels("x", 0, 1, (4, 16, 64)),
        Categories("c", ("a", "b")),
        Levels("z", 1, 1e4, (4,), "signed-log"),
    )
)
OPTIONS = {"epsilon": 3.0, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "x": rng.random(4_000),
            "c": rng.choice(["a", "b"], 4_000),
            "z": 10 ** rng.uniform(0, 4, 4_000),
        }
    )
    margin = 3.0 * np.sin(6.0 * frame["x"]) + (frame["c"] == "a")
    return frame, margin, rng.random(4_000) < 1.0 / (1.0 + np.exp(-margin))


def fitted(table, kind=DPLogisticRegression, **options):
    frame, _, y = table
    target = {"classes": [False, True]} if kind is DPLogisticRegression else {}
    return kind(**(OPTIONS | target | options)).fit(PublicEncoder(SCHEMA).transform(frame), y)


@pytest.mark.parametrize(("epsilon", "size"), [(0.02, 4), (0.5, 16), (100.0, 64)])
def test_a_curve_is_what_the_number_adds_to_the_margin(table, epsilon, size):
    model = fitted(table, epsilon=epsilon)
    curve, other = model.curves()
    assert (curve.column, curve.label, other.column) == ("x", True, "z")
    assert curve.effect.size == size
    assert curve.edges == pytest.approx(np.linspace(0, 1, size + 1))
    middles = 0.5 * (curve.edges[1:] + curve.edges[:-1])
    rows = pd.DataFrame({"x": middles, "c": "a", "z": 7.0})
    margins = model.decision_function(rows)
    # Every row has an entry in each part, so all are typical.
    if not hasattr(model, "column_scale_"):
        np.testing.assert_allclose(curve.effect, margins - margins.mean(), atol=1e-12)
    assert curve.effect.mean() == pytest.approx(0.0, abs=1e-12)
    if epsilon > 1:
        assert np.corrcoef(curve.effect, np.sin(6.0 * middles))[0, 1] > 0.95
    assert other.log_scale
    assert curve.to_pandas().shape == (size, 4)


def test_errors_are_those_of_the_noise(table):
    """Of many fits, the effects lie about their mean as far as the curve says."""
    # So little budget that the loss is flat as far as the fits go; elsewhere errors are smaller.
    fits = [fitted(table, epsilon=0.1, random_state=seed).curves()[0] for seed in range(40)]
    fits = [curve for curve in fits if curve.effect.size == 16]
    assert len(fits) > 25
    spread = np.std([curve.effect for curve in fits], axis=0)
    told = np.mean([curve.standard_error for curve in fits], axis=0)
    # The noise of the slope, which calibration finds, comes on top.
    assert 0.9 < np.sqrt((spread**2).mean() / (told**2).mean()) < 1.35


def test_scaled_columns_have_curves_of_the_same_size(table):
    model = fitted(table, epsilon=100.0)
    assert model.column_scale_.min() < 1.0
    (curve, _), (frame, *_) = model.curves(), table
    margins = model.decision_function(frame)
    place = np.minimum((frame["x"] * 64).astype(int), 63)
    # Of what the margins of real rows differ by, nearly all is in the curve.
    means = pd.Series(margins).groupby(place.to_numpy()).mean()
    means, effect = means - means.mean(), curve.effect[means.index]
    assert np.corrcoef(effect, means)[0, 1] > 0.95
    assert 0.7 < np.std(effect) / np.std(means) < 1.3


def test_several_classes_and_numbers_have_curves(table):
    frame, margin, _ = table
    classes = np.digitize(margin, [0.0, 2.0])
    model = fitted((frame, None, classes), classes=[0, 1, 2])
    names = [curve.name for curve in model.curves()]
    assert names == [f"{column}: {label}" for column in "xz" for label in range(3)]
    model = fitted((frame, None, margin), DPLinearRegression, target_bounds=(-4, 5))
    assert [curve.name for curve in model.curves()] == ["x", "z"]
    assert np.ptp(model.curves()[0].effect) > 2.0


def test_without_such_numbers_there_are_none():
    model = DPLogisticRegression(1.0, classes=[0, 1]).fit(np.eye(4), [0, 1, 0, 1])
    assert model.curves() == []
    with pytest.raises(ValueError, match="on several levels"):
        model.plot_curves()


def test_curves_are_drawn(table, tmp_path):
    model = fitted(table)
    display = model.plot_curves()
    assert [axes.get_title() for axes in display.ax_] == ["x: True", "z: True"]
    assert display.ax_[1].get_xscale() == "symlog"
    figure, axes = pyplot.subplots(2)
    assert model.plot_curves(ax=axes).figure_ is figure
    pyplot.close("all")
    model.save(tmp_path / "m.npz")
    assert "x" in load(tmp_path / "m.npz").curves()[0].column
    shown = "show", tmp_path / "m.npz", "--plot", tmp_path / "p.png"
    assert "curves; --top" not in said(*shown)
    assert "p.png (1 of 2 curves; --top K)" in said(*shown, "--force", "--top", "1")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    told = found("show", tmp_path / "m.npz")
    assert [one["column"] for one in told["curves"]] == ["x", "z"]
    assert told["curves"][0]["bins"] == model.curves()[0].rows()
    said("report", tmp_path / "m.npz", "--out", tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert page.count('class="curve"') == 2
    assert "What a number adds to the margin of a typical row" in page


@pytest.mark.parametrize("epsilon", [0.02, 0.5])
def test_a_curve_includes_the_linear_column(table, epsilon):
    frame, _, y = table
    schema = Schema((Levels("x", 0, 1, (4, 16, 64), linear=True), SCHEMA.parts[1]))
    model = DPLogisticRegression(**(OPTIONS | {"epsilon": epsilon, "classes": [False, True]}))
    model.fit(PublicEncoder(schema).transform(frame), y)
    (curve,) = model.curves()
    assert curve.effect.size == 64
    middles = 0.5 * (curve.edges[1:] + curve.edges[:-1])
    margins = model.decision_function(pd.DataFrame({"x": middles, "c": "a"}))
    # Rows differ a little in length, because the linear column is longer near the ends.
    assert np.corrcoef(curve.effect, margins)[0, 1] > 0.99
