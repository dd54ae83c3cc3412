"""Numbers in bins on several resolutions, and how many of them enter a fit."""

import numpy as np
import pandas as pd
import pytest

from dplasso import DPLassoClassifier, DPLogisticRegression, PublicEncoder, load
from schemas import Categories, Cross, Levels, Schema, schema_of


def rows(part, *values):
    X = PublicEncoder(Schema((part,))).transform(pd.DataFrame({part.column: values}))
    return [np.flatnonzero(row).tolist() for row in X.toarray()]


def test_a_number_is_in_one_bin_of_each_level():
    part = Levels("x", 0, 8, (2, 4))
    assert rows(part, 0.0, 1.99, 2.0, 4.0, 7.9) == [[0, 2], [0, 2], [0, 3], [1, 4], [1, 5]]
    # Beyond the range it is in the bin at the end; a missing one has a column of its own.
    assert rows(part, -5.0, 80.0, np.nan) == [[0, 2], [1, 5], [6]]
    assert rows(Levels("x", 0, 8, (2, 4), missing="ignore"), np.nan) == [[]]


def test_names_say_where_the_bins_are():
    schema = Schema((Levels("x", 0, 8, (2, 4)),))
    names = ["x<4", "x>=4", "x<2", "2<=x<4", "4<=x<6", "x>=6", "x (missing)"]
    assert schema.names(range(7)) == names
    assert schema_of(schema.to_json()) == schema
    (described,) = schema.described()
    assert described.startswith("x: levels(low=0.0, high=8.0, levels=[2, 4]")


@pytest.mark.parametrize("spacing", ["equal", "signed-log"])
def test_levels_are_nested_to_the_bit(spacing):
    part = Levels("x", -70.0, 1e5, (4, 16, 64), spacing)
    fine = part.edges(64)
    assert (np.diff(fine) > 0).all()
    assert fine[[0, -1]] == pytest.approx([-70.0, 1e5])
    for level in (4, 16):
        assert part.edges(level).tolist() == fine[:: 64 // level].tolist()


def test_steps_of_a_signed_logarithm_grow_in_both_directions():
    widths = np.diff(Levels("x", -1e4, 1e4, (16,), "signed-log").edges(16))
    assert widths == pytest.approx(widths[::-1])
    assert (np.diff(widths[8:]) > 0).all()


def test_a_cross_takes_the_coarsest_level():
    schema = Schema((Levels("x", 0, 8, (2, 4)), Categories("c", ("a",)), Cross(("x", "c"))))
    X = PublicEncoder(schema).transform(pd.DataFrame({"x": [1.0, 5.0, None], "c": ["a"] * 3}))
    crossed = X.toarray()[:, schema.offsets[2] :]
    assert crossed.shape[1] == 9
    names = schema.names(schema.offsets[2] + crossed.argmax(axis=1))
    assert names == ["x<4 & c=a", "x>=4 & c=a", "x (missing) & c=a"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    x = rng.random(3_000)
    y = np.where(rng.random(3_000) < np.where(np.abs(x - 0.5) < 0.2, 0.9, 0.1), "yes", "no")
    return pd.DataFrame({"x": x}), y


def weighed(model):
    """Return the columns that have a weight, as all have that enter a fit with noise."""
    weights = getattr(model.coef_, "toarray", lambda: model.coef_)()[0]
    return np.flatnonzero(weights).tolist()


def encoded(table, levels=(4, 16, 64)):
    return PublicEncoder(Schema((Levels("x", 0, 1, levels),))).transform(table)


@pytest.mark.parametrize(("epsilon", "size"), [(0.03, 5), (1.0, 21), (100.0, 85)])
def test_small_budgets_take_fewer_levels(table, epsilon, size, tmp_path):
    X, y = table
    model = DPLogisticRegression(epsilon, classes=["no", "yes"], random_state=0).fit(encoded(X), y)
    assert model.coef_.shape == (1, 85)
    # The columns of the coarser levels, and that of missing values.
    assert weighed(model) == [*range(size - 1), 84]
    # A row is read in the columns that enter, and the file says which.
    model.save(tmp_path / "m.npz")
    again = load(tmp_path / "m.npz").decision_function(X)
    np.testing.assert_array_equal(again, model.decision_function(encoded(X)))


@pytest.mark.parametrize(
    "model",
    [
        DPLogisticRegression(0.03, classes=["no", "yes"], max_weights=5),
        DPLogisticRegression(0.03, classes=["no", "yes"], prior=np.zeros(85)),
        DPLassoClassifier(0.03, classes=["no", "yes"]),
    ],
)
def test_short_lists_and_public_models_see_all_levels(table, model):
    X, y = table
    releases = [entry.release for entry in model.fit(encoded(X), y).model_.released.entries]
    assert "Entered" not in {type(release).__name__ for release in releases}


def test_a_linear_column_rises_over_the_finest_bins():
    schema = Schema((Levels("x", 0, 8, (2, 4), linear=True),))
    assert schema.names([6, 7]) == ["x", "x (missing)"]
    # A record has an entry there besides that of its bin.
    assert Schema((Levels("x", 0, 8, (4,), linear=True),)).one_hot == ()
    encoded = PublicEncoder(schema).transform(pd.DataFrame({"x": [-9.0, 3.9, 4.0, 99.0, np.nan]}))
    assert encoded.toarray()[:, 6].tolist() == [-0.75, -0.25, 0.25, 0.75, 0.0]
    with pytest.raises(ValueError, match="linear of the levels of column 'x' must"):
        Levels("x", 0, 8, (2, 4), linear=1)
