"""The model file: what a fit released, in a documented, versioned file without pickle.

The release *is* the model; the weights follow from it. Values that JSON can hold stand in the
archive's header; labels and the release in arrays of their own (docs/model-file.md). Checkpoints
hold a release in the same way.
"""

import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.encoding.origin import (
    Origin,
    RowSteps,
    origin_from_json,
    row_steps_from_json,
    schema_of,
)
from dplasso.encoding.schema import Schema
from dplasso.errors import ModelFileError, shown
from dplasso.files.archive import (
    ArchiveKind,
    array_of,
    labels_from_array,
    labels_to_array,
    parse_array,
    read_archive,
    write_archive,
)
from dplasso.files.json_values import from_json, to_json
from dplasso.model.linear import ARRAYS, LinearModel, MatchedPrior, linear_model, prior_from
from dplasso.phases.released import Released
from dplasso.phases.releases import Counted
from dplasso.privacy.statement import PrivacyStatement

FORMAT_VERSION = 3
_OLDER = "fit again, or load it with dplasso 0.3 and give its weights as a prior"
_KIND = ArchiveKind("model", "dplasso-model", FORMAT_VERSION, ModelFileError, _OLDER)
# A parameter that concerns the curator alone.
_LEDGER = "ledger"
_ORIGIN, _PRIOR, _PIPELINE = "origin", "prior", "pipeline"
_ENTRIES = {
    *("magic", "version", "written_by", "params", "privacy", "n_features"),
    *("classes", "feature_names"),
}
_LABELS = "classes"


@dataclass(frozen=True)
class ReleasedFile:
    """The content of model files and checkpoints."""

    params: dict[str, Any]
    released: Released
    statement: PrivacyStatement
    # Shape (K,): the labels; none for a regression.
    classes: NDArray[Any]
    n_features: int
    # Shape (D,), if the columns had names.
    feature_names: NDArray[np.object_] | None = None

    def __post_init__(self) -> None:
        n_features, classes, names = self.n_features, self.classes, self.feature_names
        if type(n_features) is not int or not 1 <= n_features < 2**63:
            raise ValueError(f"the number of columns cannot be {n_features!r}")
        if classes.ndim != 1 or classes.size == 1 or len(set(classes.tolist())) < classes.size:
            raise ValueError("a model has two or more different labels, or none for a regression")
        if names is not None and names.shape != (n_features,):
            raise ValueError(f"the names do not fit {n_features} columns")


def write_released(
    held: ReleasedFile,
    path: str | os.PathLike[str],
    kind: ArchiveKind,
    *,
    params: Mapping[str, Any],
    entries: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    temporary: str | None = None,
) -> None:
    """Write a release, with these parameters, further entries and arrays, as an archive.

    ValueError if the file cannot hold a label or parameter, or the parameter `classes` was changed.
    """
    labels, label_type = labels_to_array(held.classes)
    if (declared := params.get("classes")) is not None:
        if labels_to_array(declared)[0].tolist() != labels.tolist():
            raise ValueError(
                f"classes={shown(declared)} was changed after fitting: the model knows the labels "
                f"{labels.tolist()}."
            )
        params = {**params, "classes": _LABELS}
    names = held.feature_names
    header = {
        "params": params_to_json(params, kind.noun),
        "privacy": held.statement.to_dict(),
        "n_features": held.n_features,
        "classes": label_type,
        "feature_names": None if names is None else [str(name) for name in names],
        **entries,
    }
    members = {_LABELS: labels, **held.released.arrays(), **arrays}
    write_archive(path, kind, header, members, temporary=temporary)


def parse_released(
    header: Mapping[str, Any],
    members: Mapping[str, bytes],
    *,
    entries: Collection[str],
    besides: Collection[str],
) -> dict[str, Any]:
    """Return the attributes of `ReleasedFile` from a file; ValueError if it holds anything else.

    The header has these further `entries`; `besides` names members that the file may hold.
    """
    if set(header) != {*_ENTRIES, *entries}:
        raise ValueError("its header has missing or unknown entries")
    releases = set(members) - {"header", _LABELS, *besides}
    if _LABELS not in members or "shares" not in releases:
        raise ValueError(f"it holds {', '.join(sorted(members))}")
    classes = labels_from_array(parse_array(members[_LABELS]), header["classes"])
    names = header["feature_names"]
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("its feature names are not names")
        names = np.array(names, dtype=object)
    params = {name: from_json(value, {}) for name, value in header["params"].items()}
    if params.get("classes") not in (None, _LABELS):
        raise ValueError("its parameter classes does not refer to its labels")
    if params.get("classes") is not None:
        params["classes"] = classes
    statement = PrivacyStatement.from_dict(header["privacy"])
    return {
        "params": params,
        "released": Released.from_arrays({name: parse_array(members[name]) for name in releases}),
        "statement": statement,
        "classes": classes,
        "n_features": header["n_features"],
        "feature_names": names,
    }


def params_to_json(params: Mapping[str, Any], noun: str) -> dict[str, Any]:
    """Return parameters as JSON values; ValueError about a `noun` file for one of another kind."""

    def refuse(name: str, value: Any) -> Any:
        raise ValueError(
            f"A {noun} file cannot hold the parameter {name} of type {type(value).__name__}."
        )

    return {name: to_json(value, partial(refuse, name)) for name, value in params.items()}


@dataclass(frozen=True)
class Model(ReleasedFile):
    """Everything that leaves a fit, and that a model file holds.

    A file leaves out the curator's ledger and any seed.
    """

    # How the columns were made, if that is known.
    origin: Origin | None = None
    # The public model that the fit started from.
    prior: MatchedPrior | None = None
    # What makes its rows of raw records, if it was saved with a pipeline.
    row_steps: RowSteps | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        linear = self.linear
        if not linear.coefficients.shape == (linear.intercept.size, self.n_features):
            raise ValueError(f"its weights are not those of {self.n_features} columns")
        if self.schema is not None and self.schema.n_features != self.n_features:
            raise ValueError(f"the schema does not make {self.n_features} columns")
        if linear.intercept.size != len(self.output_labels):
            raise ValueError(f"{linear.intercept.size} outputs do not fit its labels")
        if self.prior is not None and self.prior.weights.shape != linear.coefficients.shape:
            raise ValueError("its prior is for other columns or labels")
        if (self.statement.prior != "") != (self.prior is not None):
            raise ValueError("its statement and its prior do not fit together")

    @cached_property
    def linear(self) -> LinearModel:
        """The weights that were released; those of a public start are not in them."""
        return linear_model(self.released, self.n_features)

    @property
    def schema(self) -> Schema | None:
        """The schema that made the columns, if one did."""
        return schema_of(self.origin)

    @property
    def output_labels(self) -> list[Any]:
        """The label that each margin speaks for: of two classes the second; None for a number."""
        labels: list[Any] = self.classes.tolist() or [None]
        return labels if self.statement.many_labels or len(labels) != 2 else labels[1:]

    @property
    def n_records(self) -> float | None:
        """The number of records, if a private fit released it."""
        counted = self.released.last(Counted)
        return counted.total if counted and math.isfinite(self.statement.mu) else None

    @property
    def digest(self) -> str:
        """64 hexadecimal digits by which a ledger knows what it has paid for."""
        return self.released.digest


def write_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model file whole or not at all; ValueError if it cannot hold a parameter."""
    params = {name: value for name, value in model.params.items() if name != _LEDGER}
    params["random_state"] = "seeded" if model.statement.randomness == "seeded" else None
    optional = {_ORIGIN: model.origin, _PRIOR: model.prior, _PIPELINE: model.row_steps}
    entries = {name: part.to_json() for name, part in optional.items() if part is not None}
    arrays = {} if model.prior is None else model.prior.arrays()
    write_released(model, path, _KIND, params=params, entries=entries, arrays=arrays)


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read and check a model file; ModelFileError if it is damaged, foreign or of another version.

    It has no ledger, and `random_state` is None.
    """
    return read_archive(path, _KIND, _parse)


def written_by(path: str | os.PathLike[str]) -> str:
    """Return the program that wrote a model file, as it says itself."""
    return read_archive(path, _KIND, lambda header, _: str(header["written_by"]))


def _parse(header: dict[str, Any], members: dict[str, bytes]) -> Model:
    # A file need not say how its columns and rows were made.
    optional = {_ORIGIN, _PRIOR, _PIPELINE} & set(header)
    besides = ARRAYS if _PRIOR in optional else ()
    parts = parse_released(header, members, entries=optional, besides=besides)
    params, prior = parts["params"], None
    if _PRIOR in optional:
        arrays = {name: array_of(members, name, kind) for name, kind in ARRAYS.items()}
        prior = prior_from(header[_PRIOR], arrays)
    if params.get("random_state") not in (None, "seeded"):
        raise ValueError("it holds a random_state")
    params["random_state"] = None
    if _LEDGER in params:
        # A fit with a loaded estimator must not be charged where a stranger's file says.
        raise ValueError("it holds a ledger")
    origin, steps = origin_from_json(header.get(_ORIGIN)), None
    if _PIPELINE in optional:
        steps = row_steps_from_json(header[_PIPELINE], parts["n_features"])
    return Model(**parts, origin=origin, prior=prior, row_steps=steps)
