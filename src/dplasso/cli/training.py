"""Options of ``fit`` for the estimator, and the estimator they describe."""

import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from dplasso.cli import output
from dplasso.cli.inputs import ReadingOptions
from dplasso.cli.options import Chosen
from dplasso.data.formats import Dataset
from dplasso.data.source_files import expand
from dplasso.encoding.origin import origin_of
from dplasso.encoding.schema import Schema
from dplasso.errors import DataError, NoiseWarning, ParameterError, WeakPrivacyWarning
from dplasso.estimators.base import PrivateLinearModel
from dplasso.estimators.cost import estimator_of
from dplasso.estimators.fitting import fit_estimator
from dplasso.fit.method import checked_target_bounds
from dplasso.fit.run import Hooks
from dplasso.ledger import Ledger


def default_method(is_regression: bool) -> str:
    """Return the default method, the more accurate on nearly all data."""
    return "linear" if is_regression else "logistic"


def chosen_ledger(path: Path | None, dataset: str | None, purpose: str | None) -> Ledger | None:
    """Return the ledger that ``--ledger``, ``--dataset`` and ``--purpose`` name together."""
    if path is not None:
        return Ledger(str(path), dataset, purpose)
    for name, value in (("dataset", dataset), ("purpose", purpose)):
        if value is not None:
            raise ParameterError(f"`{name}={value!r}` is for a ledger", advice="give `ledger` too")
    return None


@dataclass(frozen=True)
class EstimatorOptions:
    """Options for the estimator.

    Model
    -----
    no_intercept
        Leave the intercept out.
    infer_share : S
        Part of the budget for the intervals of --infer. Default: half of it.
    public_data : DATA
        Public labelled rows in the format of DATA, to train the model that the fit starts from. You
        can repeat the option. The fit does not protect these rows.
    public_rows : DATA
        Public rows in the format of DATA, whose labels are not read. They show which columns go
        together, or predict the columns that --infer names. You can repeat the option. The fit does
        not protect these rows.

    Privacy
    -------
    classes : NEG,POS[,...]
        The class labels, if they are publicly known. Default: the labels in the file, which the
        guarantee does not protect.
    features : D >= 1
        Number of columns, if it is publicly known. Default: that of the file, which the guarantee
        does not protect.
    """

    epsilon: float
    method: str | None = None
    classes: str | None = None
    target_bounds: str | None = None
    features: int | None = None
    no_intercept: bool = False
    infer_share: float | None = None
    random_state: int | None = None
    ledger: Path | None = None
    dataset: str | None = None
    purpose: str | None = None
    prior: Path | None = None
    public_data: list[str] | None = None
    public_rows: list[str] | None = None
    parameters: Chosen = field(default_factory=dict)

    @property
    def is_regression(self) -> bool:
        """Whether the fit learns numbers."""
        return self.method == "linear" or self.target_bounds is not None

    def estimator(self) -> PrivateLinearModel:
        """Make the estimator; classes wait for `declare`, which knows their type."""
        if self.classes is not None:
            parse_classes(self.classes)
            if self.is_regression:
                raise ParameterError("a regression has no classes", advice="leave `classes` out")
        bounds = None if self.target_bounds is None else parse_target_bounds(self.target_bounds)
        if self.is_regression:
            checked_target_bounds(bounds)
        # None is an option that was not given.
        settings = {
            name: None if value == "none" else value for name, value in self.parameters.items()
        }
        settings |= {"epsilon": self.epsilon, "fit_intercept": not self.no_intercept}
        settings |= {"random_state": self.random_state, **self._inference()}
        if self.prior is not None:
            settings["prior"] = self.prior
        settings["ledger"] = chosen_ledger(self.ledger, self.dataset, self.purpose)
        # Public rows are read later; here an estimator that takes none refuses them.
        public = {"public_data": self.public_data, "public_rows": self.public_rows}
        settings |= {name: None for name, rows in public.items() if rows}
        return estimator_of(self.method or default_method(self.is_regression), bounds, **settings)

    def _inference(self) -> dict[str, Any]:
        columns, share = self.parameters.get("infer", "none"), self.infer_share
        if share is None:
            return {}
        if columns == "none":
            raise ParameterError(
                f"`infer_share={share:g}` is for intervals", advice="give `infer` too"
            )
        return {"infer": {"columns": columns, "share": share}}

    def declare(self, estimator: PrivateLinearModel, y: NDArray[Any]) -> None:
        """Declare the classes as labels of the data's type; refuse fractions as classes."""
        if self.classes is not None:
            estimator.set_params(classes=classes_like(parse_classes(self.classes), y))
        elif not self.is_regression and y.dtype.kind == "f" and np.any(y % 1.0 != 0.0):
            raise DataError(
                "the labels are numbers with fractions; to learn numbers, declare the interval "
                "that they lie in: --target-bounds LOW,HIGH"
            )

    @property
    def beside(self) -> tuple[Path | None, ...]:
        """Files that a fit reads or writes besides data and outputs."""
        # One file may give both labelled rows and rows without labels.
        public = [data for data in (self.public_data, self.public_rows) if data]
        return (self.ledger, self.prior, *(path for data in public for path in expand(data)))

    def refuse_private(self, files: Iterable[Path]) -> None:
        """Refuse public rows in files of private ones; without labels, they may be public."""
        own = {path.resolve() for path in files}
        unlabelled = [] if self.parameters.get("neighbors") == "label" else self.public_rows
        for names in filter(None, (self.public_data, unlabelled)):
            for path in expand(names):
                if path.resolve() in own:
                    raise DataError(
                        f"{path}: its rows are private, and the fit would not protect them as "
                        "public rows; pass a file of other people"
                    )

    def read_public(
        self,
        estimator: PrivateLinearModel,
        reading: ReadingOptions,
        train: Dataset,
        bars: output.Bars,
        schema: Schema | None,
    ) -> None:
        """Read the public rows like the training rows, and pass them to the estimator."""
        reading = replace(reading, labels=None)

        like = bars, train.X.shape[1], schema, origin_of(train.X)
        if self.public_data:
            public = reading.read(expand(self.public_data), *like)
            estimator.set_params(public_data=(public.X, public.y))
        if self.public_rows:
            rows = reading.read(expand(self.public_rows), *like, labelled=False)
            estimator.set_params(public_rows=rows.X)


def train_with_bar(
    estimator: PrivateLinearModel,
    X: Any,
    y: Any,
    bars: output.Bars,
    label: str,
    hooks: Hooks | None = None,
    **more: Any,
) -> dict[str, float]:
    """Fit an estimator under a progress bar; return the seconds by part, for the curator only."""
    before, began = bars.compiled.seconds, time.perf_counter()
    with bars.task(label) as progress, bars.stages() as stage, warnings.catch_warnings():
        for kind in (WeakPrivacyWarning, NoiseWarning):
            warnings.filterwarnings("always", category=kind)
        copied = partial(stage, "copying stores")
        hooks = replace(hooks or Hooks(), progress=progress, copied=copied)
        fit_estimator(estimator, X, y, hooks, **more)
    train = time.perf_counter() - began
    return {"train": train, "compile": bars.compiled.seconds - before}


def parse_target_bounds(text: str) -> tuple[float, float]:
    """Read ``--target-bounds``: two numbers, the lower first."""
    try:
        low, high = (float(end) for end in text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not an interval; write --target-bounds LOW,HIGH, for example 0,100"
        ) from None
    return low, high


def parse_classes(text: str) -> tuple[str, ...]:
    """Split ``NEG,POS,...``; fewer than two labels, or one twice, is wrong usage."""
    labels = [label.strip() for label in text.split(",")]
    if not 2 <= len(set(labels)) == len(labels) or not all(labels):
        raise typer.BadParameter(
            f"--classes {text}: name two or more different labels, for example --classes no,yes"
        )
    return tuple(labels)


def classes_like(labels: tuple[str, ...], y: NDArray[Any]) -> list[Any]:
    """Return declared labels as numbers, bools or strings, by the type of `y` alone."""
    words = {"false": False, "0": False, "true": True, "1": True}
    try:
        if y.dtype.kind == "b":
            return [words[label.lower()] for label in labels]
        if y.dtype.kind in "iuf":
            numbers = map(float, labels)
            return [int(number) if number.is_integer() else number for number in numbers]
    except (KeyError, ValueError):
        raise DataError(
            f"--classes {','.join(labels)}: the labels in the data are "
            f"{'booleans' if y.dtype.kind == 'b' else 'numbers'}, so the declared ones must be too"
        ) from None
    return list(labels)
