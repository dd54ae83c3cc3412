"""The model file: what a fit released, in a documented, versioned file without pickle.

The release *is* the model; the weights follow from it. The format is described in
``docs/model-file.md``.
"""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dplasso.encoding.origin import Origin, origin_from_json
from dplasso.errors import ModelFileError
from dplasso.files.archive import ArchiveKind, array_of, read_archive
from dplasso.frank_wolfe.transcript import History
from dplasso.model.codec import ReleasedFile, parse_released, write_released
from dplasso.model.linear import LinearModel, linear_model, n_outputs_of
from dplasso.model.prior import ARRAYS, MatchedPrior, prior_from
from dplasso.model.row_steps import RowSteps, row_steps_from_json

FORMAT_VERSION = 3
_OLDER = "fit again, or load it with dplasso 0.3 and give its weights as a prior"
_KIND = ArchiveKind("model", "dplasso-model", FORMAT_VERSION, ModelFileError, _OLDER)
# The curator's business: which file keeps the budget, under what name, and why.
_LEDGER = "ledger"
_HISTORY = ("objective", "gap")
_ORIGIN, _PRIOR, _PIPELINE = "origin", "prior", "pipeline"


@dataclass(frozen=True)
class Model(ReleasedFile):
    """Everything that leaves a fit, and that a model file holds.

    `params`: a file leaves out the curator's `ledger` and any seed.
    `history`: only without privacy.
    `origin`: how the columns were made; None where nobody noted it.
    `prior`: the public model that the fit started from, if there was one.
    `row_steps`: what makes its rows of raw records, where it was saved with a pipeline.
    """

    history: History | None = None
    origin: Origin | None = None
    prior: MatchedPrior | None = None
    row_steps: RowSteps | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        linear = self.linear
        if not linear.coefficients.shape == (linear.intercept.size, self.n_features):
            raise ValueError(f"its weights are not those of {self.n_features} columns")
        schema = None if self.origin is None else self.origin.schema
        if schema is not None and schema.n_features != self.n_features:
            raise ValueError(f"the schema does not make {self.n_features} columns")
        many = self.statement.many_labels
        n_outputs = linear.intercept.size
        if n_outputs != n_outputs_of(self.classes.size, many_labels=many):
            raise ValueError(f"{n_outputs} outputs do not fit its labels")
        expected = n_outputs, self.n_features
        if self.prior is not None and self.prior.weights.shape != expected:
            raise ValueError("its prior is for other columns or labels")
        if (self.statement.prior != "") != (self.prior is not None):
            raise ValueError("its statement and its prior do not fit together")
        if self.history is not None:
            # Losses and gaps are functions of the data: they must never leave a private fit.
            if self.statement.mechanism != "none":
                raise ValueError("only a fit without privacy has a history")
            if self.history.objective.shape != self.history.gap.shape:
                raise ValueError("objective and gap of its history do not fit together")

    @cached_property
    def linear(self) -> LinearModel:
        """The weights that were released; those of a public start are not in them."""
        return linear_model(self.released, self.n_features)

    @property
    def digest(self) -> str:
        """The digest, 64 hexadecimal digits, by which a ledger knows what it has paid for."""
        return self.released.digest


def write_model(
    model: Model, path: str | os.PathLike[str], *, temporary: str | None = None
) -> None:
    """Write a model file as `dplasso.files.atomic.atomic_write` does, whole or not at all.

    Raises ValueError if a label or parameter is of a kind that the file cannot hold.
    """
    params = {name: value for name, value in model.params.items() if name != _LEDGER}
    params["random_state"] = "seeded" if model.statement.randomness == "seeded" else None
    history = {
        name: getattr(model.history, name).astype("<f8", copy=False)
        for name in _HISTORY
        if model.history is not None
    }
    entries = {} if model.origin is None else {_ORIGIN: model.origin.to_json()}
    arrays = history
    if model.prior is not None:
        entries, arrays = entries | {_PRIOR: model.prior.to_json()}, arrays | model.prior.arrays()
    if model.row_steps is not None:
        entries = entries | {_PIPELINE: model.row_steps.to_json()}
    write_released(
        model, path, _KIND, params=params, entries=entries, arrays=arrays, temporary=temporary
    )


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read and check a model file; `random_state` is ``None``, `ledger` is missing.

    Raises ModelFileError if the file is damaged, foreign, or of another version of the format.
    """
    return read_archive(path, _KIND, _parse)


def written_by(path: str | os.PathLike[str]) -> str:
    """Return the program that wrote a model file, as it says itself."""
    return read_archive(path, _KIND, lambda header, _: str(header["written_by"]))


def _parse(header: dict[str, Any], members: dict[str, bytes]) -> Model:
    # A file need not say how its columns and rows were made.
    given = {_ORIGIN, _PRIOR, _PIPELINE} & set(header)
    parts = tuple(ARRAYS) if _PRIOR in given else ()
    besides = {name: members[name] for name in parts}
    others = {name: part for name, part in members.items() if name not in besides}
    found = parse_released(header, others, entries=given, besides=_HISTORY)
    params, history, prior = found["params"], None, None
    if besides:
        arrays = {name: array_of(members, name, kind) for name, kind in ARRAYS.items()}
        prior = prior_from(header[_PRIOR], arrays)
    if "gap" in members:
        history = History(*(array_of(members, name, "<f8") for name in _HISTORY))
    if params.get("random_state") not in (None, "seeded"):
        raise ValueError("it holds a random_state")
    params["random_state"] = None
    if _LEDGER in params:
        # A fit with a loaded estimator must not be charged where a stranger's file says.
        raise ValueError("it holds a ledger")
    origin, steps = origin_from_json(header.get(_ORIGIN)), None
    if _PIPELINE in given:
        steps = row_steps_from_json(header[_PIPELINE], found["n_features"])
    return Model(**found, history=history, origin=origin, prior=prior, row_steps=steps)
