"""Releases as a file holds them: damaged ones are refused, and models follow from good ones."""

from dataclasses import replace

import numpy as np
import pytest

from dplasso.model.linear import linear_model, steps_of
from dplasso.phases.moments import Moments, NamedSums
from dplasso.phases.released import Entry, Released
from dplasso.phases.releases import (
    KINDS,
    Calibrated,
    Counted,
    Curvature,
    Descended,
    Drawn,
    Entered,
    Kept,
    Mixed,
    Paired,
    RowLength,
    RowSize,
    Scaled,
    Started,
)

N_FEATURES = 4
NONE = np.zeros(0, dtype=np.int64)


def drawn(vertex, sign=1, **changes):
    vertex = np.array(vertex, dtype=np.int64)
    sign = np.broadcast_to(np.int8(sign), vertex.shape)
    public = {"radius": 10.0, "late_start": 0, "constant": 0.5, "offset": np.zeros(1)}
    return Drawn(vertex, sign, **(public | {"n_features": N_FEATURES} | changes))


def descended(weights, columns=NONE, **changes):
    weights = np.array(weights, dtype=np.float64)
    known = {"constant": np.zeros(0), "offset": np.zeros(weights.shape[1])}
    known |= {"standard_error": 0.1, "n_steps": 8}
    return Descended(np.asarray(columns), weights, **(known | changes))


WHOLE = (
    Counted(np.array([40.0, 50.0]), 3.0),
    Started(0.5, np.array([0.1]), 0.25),
    drawn([0, 2], -1),
    Moments(
        np.zeros(2), np.zeros(2), np.ones(3), np.zeros(0), 0.1, 0.2, 0.3, 1.0, 0.0, np.array([1])
    ),
    NamedSums(np.array([1, 3]), np.ones(2), np.ones((3, 2)), np.ones((3, 2)), 90.0, 50, 4, NONE),
    Mixed(1.1, 0.02, 30, 0.4),
    Scaled(np.array([1.0, 30.0], dtype=np.float32)),
    RowLength(0.5),
    RowSize(0.5),
    Curvature(70.0),
    Kept(np.array([0, 2])),
    Entered(np.array([0, 2])),
    Paired(np.array([0, 2]), np.array([0.5, 9.75], dtype=np.float32)),
    descended([[1.0], [2.0]], [0, 2]),
    Mixed(-0.1, 0.02, 40, 0.9),
    Calibrated(2.0, np.array([0.3]), 1.5),
)


def of(*releases, share=0.1):
    return Released(tuple(Entry(share, one) for one in releases))


def test_every_kind_is_among_them():
    assert {type(one) for one in WHOLE} == {*KINDS.values()}


def test_a_release_has_a_place_a_kind_and_fields():
    released = of(WHOLE[0], None, WHOLE[2])
    arrays = released.arrays()
    assert list(arrays)[:3] == ["shares", "00-count-counts", "00-count-deviation"]
    assert arrays["02-vertices-vertex"].dtype.str == "<i8"
    assert arrays["02-vertices-sign"].dtype.str == "|i1"
    again = Released.from_arrays(arrays)
    assert again.entries[1].release is None
    assert again.spent == released.spent
    # Another share, or another number, is another fit.
    assert of(*WHOLE).digest == of(*WHOLE).digest != of(*WHOLE, share=0.01).digest
    changed = replace(WHOLE[-1], slope=2.1)
    assert of(*WHOLE[:-1], changed).digest != of(*WHOLE).digest


@pytest.mark.parametrize(
    ("member", "array"),
    [
        ("shares", np.array([0.1, -0.1, 0.1])),
        ("shares", np.array([0.1, np.nan, 0.1])),
        ("shares", np.array([1.1])),
        ("shares", np.array(0.1)),
        ("00-count-deviation", np.zeros(1)),
        ("00-count-deviation", None),
        ("00-count-counts", np.array([np.inf])),
        ("00-count-others", np.zeros(1)),
        ("00-start-slope", np.zeros(())),
        ("17-count-deviation", np.zeros(())),
        ("more", np.zeros(1)),
        ("x0-count-counts", np.zeros(1)),
        ("02-vertices-vertex", np.array([0, 5])),
        ("02-vertices-vertex", np.array([-1, 0])),
        ("02-vertices-vertex", np.array([[0, 1]])),
        ("02-vertices-vertex", np.array([0])),
        ("02-vertices-sign", np.array([0, 1], dtype=np.int8)),
        ("02-vertices-sign", np.array([-128, 1], dtype=np.int8)),
        ("02-vertices-radius", np.array(-1.0)),
        ("02-vertices-late_start", np.array(-1)),
        ("02-vertices-offset", np.array([np.nan])),
    ],
)
def test_what_no_fit_releases_is_refused(member, array):
    arrays = of(WHOLE[0], None, WHOLE[2]).arrays() | {member: array}
    if array is None:
        del arrays[member]
    with pytest.raises(ValueError):
        Released.from_arrays(arrays)


@pytest.mark.parametrize("kind", [Counted, Scaled, Started, Descended, Calibrated, Curvature])
def test_no_release_holds_what_is_not_finite(kind):
    (one,) = (one for one in WHOLE if type(one) is kind)
    for field, array in one.arrays().items():
        if array.dtype.kind == "f" and array.size:
            with pytest.raises(ValueError, match="is not finite"):
                replace(one, **{field: np.full_like(array, np.nan)})


@pytest.mark.parametrize("late_start", [0, 5])
def test_the_coefficients_of_vertices_match_the_recursion(late_start):
    rng = np.random.default_rng(0)
    vertex, sign = rng.integers(0, N_FEATURES + 1, 30), rng.choice(np.array([-1, 1], np.int8), 30)
    taken = replace(drawn(vertex), sign=sign, late_start=late_start)
    w = np.zeros(N_FEATURES + 1)
    for step, (j, s) in enumerate(zip(vertex, sign, strict=True), start=1):
        eta = 2.0 / (step + late_start + 2.0)
        w *= 1.0 - eta
        w[j] += eta * s * 10.0
    coefficients, constant = taken.coefficients()
    assert coefficients.shape == (1, N_FEATURES)
    np.testing.assert_allclose(coefficients.toarray()[0], w[:-1], atol=1e-12)
    np.testing.assert_allclose(constant, [0.5 * w[-1]], atol=1e-12)
    assert taken.columns.tolist() == sorted({*vertex.tolist()} - {N_FEATURES})
    model = linear_model(of(taken), N_FEATURES)
    np.testing.assert_array_equal(model.coefficients.toarray(), coefficients.toarray())


def test_vertices_of_several_outputs_have_coordinates_one_after_another():
    taken = drawn([1, 6, 9, 14], offset=np.array([0.0, 1.0, 2.0]))
    coefficients, constant = taken.coefficients()
    assert coefficients.shape == (3, N_FEATURES)
    assert np.transpose(coefficients.nonzero()).tolist() == [[0, 1], [1, 1]]
    # Coordinates 4, 9 and 14 are those of the constant column.
    assert (constant > 0).tolist() == [False, True, True]
    assert taken.columns.tolist() == [1]
    assert linear_model(of(taken), N_FEATURES).intercept == pytest.approx(constant + taken.offset)


def test_the_constant_is_a_column_only_where_there_is_one():
    assert drawn([N_FEATURES] * 3).columns.size == 0
    with pytest.raises(ValueError, match="outside the 4 columns"):
        drawn([N_FEATURES] * 3, constant=0.0)


def test_a_model_is_calibrated_weights_of_the_columns_that_are_left():
    energies = np.array([1.0, 0.0, 100.0, 0.0], dtype=np.float32)
    found = descended([[1.0], [2.0]], [0, 2], constant=np.array([3.0]), offset=np.array([0.2]))
    released = of(
        *(Scaled(energies), RowLength(0.5), Kept(np.array([0, 2])), found),
        Calibrated(2.0, np.array([0.3]), 1.5),
    )
    model = linear_model(released, N_FEATURES)
    assert model.coefficients.toarray().tolist() == [[4.0, 0.0, 8.0, 0.0]]
    assert model.intercept == pytest.approx([2.0 * (found.intercept[0] + 0.2) + 0.3])
    assert model.standard_errors.tolist() == [0.4, 0.1]
    assert (model.columns.tolist(), model.prior_slope) == ([0, 2], 1.5)
    assert steps_of(released) == 8


def test_labels_have_a_slope_each():
    slopes = Calibrated(2.0, np.zeros(2), label_slopes=np.array([1.0, 0.5]))
    model = linear_model(of(descended([[1.0, 1.0]]), slopes), 1)
    assert model.coefficients.tolist() == [[2.0], [1.0]]
    assert model.standard_errors.tolist() == [[0.2], [0.1]]


def test_a_fit_that_is_not_complete_has_no_model():
    for released in (of(), of(*WHOLE[:2])):
        with pytest.raises(ValueError, match="has no model"):
            linear_model(released, N_FEATURES)
