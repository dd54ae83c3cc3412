"""Small models, and their files as docs/model-file.md describes them: read and changed by numpy."""

import io
import json
import zipfile
from dataclasses import replace
from functools import cache
from hashlib import sha256
from math import inf

import numpy as np

from dplasso import DPFrankWolfeClassifier

STEPS = 6
N_FEATURES = 4


@cache
def _fitted(epsilon, seed, n_iter):
    # Nothing is counted: the vertices are all that is released.
    given = {"l1_radius": 10.0, "fit_intercept": False, "n_records": N_FEATURES}
    model = DPFrankWolfeClassifier(epsilon, n_iter=n_iter, random_state=seed, **given)
    return model.fit(np.eye(N_FEATURES), [0, 1, 0, 1]).model_


def fitted(*, private=True, seeded=False, classes=(0, 1), params=None, names=None, n_iter=STEPS):
    model = _fitted(1.0 if private else inf, 12345 if seeded else None, n_iter)
    return replace(
        model,
        params=model.params | (params or {}),
        classes=np.asarray(classes),
        feature_names=None if names is None else np.array(names, dtype=object),
    )


def same(one, other):
    """Compare everything a file holds, types included."""

    def told(model):
        arrays = [model.classes, model.feature_names]
        arrays += model.released.arrays().values()
        plain = repr(model.params), model.statement, model.n_features, model.origin
        return [plain, *(None if a is None else (a.dtype, a.tolist()) for a in arrays)]

    return told(one) == told(other)


def header_of(path):
    with np.load(path, allow_pickle=False) as file:
        return json.loads(file["header"].tobytes())


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), **options)
    return buffer.getvalue()


def parts_of(path):
    """Return the members of a file by name, but for the checksum."""
    with zipfile.ZipFile(path) as archive:
        parts = {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}
    return {name: content for name, content in parts.items() if name != "sha256"}


def rewrite(path, change=None, *, compression=zipfile.ZIP_STORED, **members):
    """Write a file anew with a changed header or members, of which None leaves one out."""
    header = header_of(path)
    if change is not None:
        change(header)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    parts = parts_of(path) | {"header": npy(text)}
    for name, value in members.items():
        parts[name] = value if value is None or isinstance(value, bytes) else npy(value)
    parts = {name: content for name, content in parts.items() if content is not None}
    lines = (f"{name} {len(parts[name])}\n".encode() + parts[name] for name in sorted(parts))
    parts["sha256"] = npy(np.frombuffer(sha256(b"".join(lines)).digest(), dtype=np.uint8))
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(f"{name}.npy", content)


def release_again(path, *releases, share=0.1):
    """Give a file other releases: pairs of a kind and its fields, or None."""
    old = {name: None for name in parts_of(path) if name[:2].isdigit()}
    new = {
        f"{place:02}-{release[0]}-{name}": np.asarray(value)
        for place, release in enumerate(releases)
        if release is not None
        for name, value in release[1].items()
    }
    rewrite(path, shares=np.full(len(releases), share), **old | new)


def vertices(vertex, sign=1, **changes):
    """Return a release of vertices."""
    vertex = np.array(vertex, dtype=np.int64)
    public = {"radius": 10.0, "late_start": 0, "constant": 0.5, "offset": np.zeros(1)}
    public |= {"sign": np.full(vertex.shape, sign, dtype=np.int8), "n_features": N_FEATURES}
    return "vertices", {"vertex": vertex} | public | changes


def gradients(weights, **changes):
    """Return a release of weights, shape (k, K), from gradients."""
    weights = np.array(weights)
    public = {"columns": np.zeros(0, dtype=np.int64), "constant": np.zeros(0), "n_steps": 8}
    public |= {"offset": np.zeros(weights.shape[1]), "standard_error": 0.0, "spread": np.zeros(0)}
    return "gradients", {"weights": weights} | public | changes
