"""Releases in a model file (docs/model-file.md): which are refused, and what follows from them."""

import numpy as np
import pytest

from dplasso import ModelFileError
from dplasso.model import read_model, write_model
from dplasso.phases.releases import KINDS
from estimators.kinds import each_sort, fitted, numbers
from fit.cases import releases
from model import files
from model.files import gradients, release_again, rewrite, vertices

NONE, TWO = np.zeros(0, dtype=np.int64), np.array([0, 2])
WHOLE = [
    ("count", {"counts": np.array([40.0, 50.0]), "deviation": 3.0}),
    ("spread", {"deviation": 0.25}),
    ("start", {"slope": 0.5, "shift": np.array([0.1]), "part": 0.25}),
    vertices([0, 2], -1),
    (
        "moments",
        {"weights": np.zeros(2), "gradient": np.zeros(2), "curvature": np.ones(3)}
        | {"squares": np.zeros(0), "gradient_deviation": 0.1, "curvature_deviation": 0.2}
        | {"squares_deviation": 0.3, "n_records": 1.0, "entry_scale": 0.5, "constant": 0.0}
        | {"references": np.array([1])},
    ),
    (
        "named",
        {"places": np.array([1, 3]), "start": np.ones(2), "sums": np.ones((3, 2))}
        | {"deviations": np.ones((3, 2)), "n_records": 90.0, "n_public": 50, "n_adjusted": 4}
        | {"references": NONE},
    ),
    ("mix", {"overlap": 1.1, "relevance": 0.02, "n_directions": 30, "part": 0.4}),
    (
        "magnitudes",
        {
            "sizes": np.array([0, 22, 127, -33], dtype=np.int8),
            "bounds": np.array([64.0, 0.0, 0.0, 4.0**16]),
            "squares": np.array([900.0, 1.0, 0.5, 1e9]),
        },
    ),
    ("centres", {"centres": np.array([30.0, 0.0, 0.0, -5e4])}),
    ("scales", {"energies": np.array([1.0, 30.0, 2.0, 0.0], dtype=np.float32)}),
    ("length", {"length": 0.5}),
    ("rows", {"part": 0.5}),
    ("curvature", {"eigenvalue": 70.0}),
    ("cut", {"columns": TWO}),
    ("levels", {"columns": TWO}),
    ("pairs", {"columns": np.arange(4), "energies": np.full(4, 0.5, dtype=np.float32)}),
    gradients([[1.0], [2.0]], columns=TWO),
    (
        "calibration",
        {"slope": 2.0, "shift": np.array([0.3]), "prior_slope": 1.5, "label_slopes": np.zeros(0)},
    ),
]


@pytest.fixture
def path(tmp_path):
    """A model file whose releases are of every kind."""
    write_model(files.fitted(), tmp_path / "model.npz")
    release_again(tmp_path / "model.npz", *WHOLE)
    return tmp_path / "model.npz"


def test_every_kind_is_among_them():
    assert {kind for kind, _ in WHOLE} == {*KINDS}


def test_what_is_read_is_written_again(path, tmp_path):
    model = read_model(path)
    write_model(model, tmp_path / "again.npz")
    one, other = (files.parts_of(name) for name in (path, tmp_path / "again.npz"))
    assert {**one, "header": b""} == {**other, "header": b""}
    # Another share, or another number, is another fit.
    for changed, share in ((WHOLE, 0.01), ([*WHOLE[:-2], WHOLE[-1], WHOLE[-2]], 0.1)):
        release_again(path, *changed, share=share)
        assert read_model(path).digest != model.digest
    # A phase may release nothing.
    release_again(path, None, *WHOLE)
    assert read_model(path).released.entries[0].release is None


@pytest.mark.parametrize("place", range(len(WHOLE)), ids=[kind for kind, _ in WHOLE])
def test_no_release_lacks_a_field_has_another_or_holds_what_is_not_finite(place, path):
    (kind, fields), whole = WHOLE[place], path.read_bytes()
    changes = [(f"{place:02}-{kind}-others", np.zeros(1), f"others.* of a {kind} rel")]
    for name, value in fields.items():
        array, member = np.asarray(value), f"{place:02}-{kind}-{name}"
        if len(fields) > 1:
            changes.append((member, None, f"of a {kind} release"))
        if not array.ndim:
            changes.append((member, array.reshape(1), f"{name} of its {kind} release is not a num"))
        if array.dtype.kind == "f" and array.size:
            changes.append((member, np.full_like(array, np.nan), f"{name} of .* is not finite"))
    for member, array, words in changes:
        rewrite(path, **{member: array})
        with pytest.raises(ModelFileError, match=words):
            read_model(path)
        path.write_bytes(whole)


def scale_of(held):
    """Return what entries of the columns are multiplied by."""
    energies = held.get("scales-energies", NONE)
    if energies.size and "cut-columns" in held:
        # Without a prior, columns of a short list are not scaled.
        energies = energies[held["cut-columns"]] if "start-slope" in held else NONE
    edges = 2.0 ** ((np.arange(1, 41) - 0.5) / 0.35)
    return 0.5 ** (energies[:, None] >= edges.astype(np.float32)).sum(axis=1)


def weights_by_the_page(held, n_features):
    """Return weights, intercepts and standard errors, as the page says they follow."""
    labels = held.get("calibration-label_slopes", NONE)
    a = held.get("calibration-slope", 1.0) * (labels if labels.size else 1.0)
    shift = held.get("calibration-shift", 0.0)
    if "gradients-weights" in held:
        # Rows that keep their lengths are up to 2.5 times as long as their gradients.
        longer = held.get("magnitudes-squares", NONE).any()
        constant = held["gradients-constant"]
        length = held.get("length-length", 0.4 if longer else 1.0)
        columns, found = held["gradients-columns"], a / length * held["gradients-weights"]
        weights = np.zeros((n_features, found.shape[1]))
        weights[columns if columns.size else slice(None)] = found
        margin = 0.1 * (1 - 2**-30) * constant if constant.size else 0.0
        spread, scale = held["gradients-spread"], scale_of(held)
        error = held["gradients-standard_error"] * np.ones(len(found))
        error *= (spread if spread.size else 1.0) * (scale if scale.size else 1.0)
        error = np.multiply.outer(a / length, error)
        return weights.T, a * (margin + held["gradients-offset"]) + shift, error
    n_outputs, t0 = held["vertices-offset"].size, held["vertices-late_start"]
    constant = held["vertices-constant"]
    size = n_features + (constant != 0.0)
    steps = np.arange(1, held["vertices-vertex"].size + 1)
    z, n = np.zeros(n_outputs * size), steps.size + t0
    np.add.at(z, held["vertices-vertex"], held["vertices-sign"] * (steps + t0 + 1.0))
    w = (held["vertices-radius"] * 2 / ((n + 1) * (n + 2)) * z).reshape(n_outputs, size)
    last = w[:, n_features] if constant else 0.0
    return a * w[:, :n_features], a * (constant * last + held["vertices-offset"]) + shift, None


@each_sort
def test_weights_follow_from_the_file_as_the_page_says(sort):
    model = fitted(sort)
    held = releases(model)
    weights, intercept, error = weights_by_the_page(held, model.n_features_in_)
    if hasattr(model, "target_bounds"):
        low, high = model.target_bounds
        half = 0.5 * (high - low)
        weights, intercept = half * weights, half * intercept + 0.5 * (high + low)
        error = None if error is None else half * error
    size = weights.size + intercept.size
    expected = np.concatenate([weights.ravel(), intercept])
    np.testing.assert_allclose(numbers(model)[:size], expected, rtol=1e-12, atol=1e-12)
    # A short list is learnt in two runs.
    steps = held.get("vertices-vertex", NONE).size or held["gradients-n_steps"]
    assert model.n_iter_ == steps or (model.n_iter_ > steps and "cut-columns" in held)
    if hasattr(model, "transcript_"):
        assert model.transcript_.vertex.tolist() == held["vertices-vertex"].tolist()
        assert model.transcript_.sign.tolist() == held["vertices-sign"].tolist()
    assert hasattr(model, "coef_standard_error_") == (error is not None)
    if error is not None:
        np.testing.assert_allclose(model.coef_standard_error_, np.squeeze(error), rtol=1e-12)
        assert sort != "labels" or len(set(error[:, 0])) == 3
