"""Options of ``fit`` and ``tune``, and the estimator they describe."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import typer
from numpy.typing import NDArray

from dplasso.cli import output
from dplasso.cli.inputs import ReadingOptions
from dplasso.cli.options import Given
from dplasso.data.formats import Dataset
from dplasso.data.source_files import expand
from dplasso.encoding.origin import check_same_origin, origin_of
from dplasso.encoding.schema import Schema
from dplasso.errors import DataError, NoiseWarning, ParameterError, WeakPrivacyWarning
from dplasso.estimators.base import PrivateLinearModel
from dplasso.estimators.cost import METHODS, check_settings
from dplasso.estimators.fitting import fit_estimator
from dplasso.fit.public_model import Prior
from dplasso.fit.run import Hooks
from dplasso.ledger import Ledger
from dplasso.model import write_model

_TASKS = ("classification", "regression")


def default_method(is_regression: bool) -> str:
    """Return the default method, the more accurate on nearly all data."""
    return "linear" if is_regression else "logistic"


def chosen_ledger(path: Path | None, dataset: str | None, purpose: str | None) -> Ledger | None:
    """Return the ledger that ``--ledger``, ``--dataset`` and ``--purpose`` name together."""
    if path is not None:
        return Ledger(str(path), dataset, purpose)
    for name, value in (("dataset", dataset), ("purpose", purpose)):
        if value is not None:
            raise ParameterError(
                f"`{name}={value!r}` needs a ledger, and none is given", advice="give `ledger` too"
            )
    return None


@dataclass(frozen=True)
class EstimatorOptions:
    """Options for the estimator.

    Model
    -----
    task : classification|regression
        Default: a regression where --target-bounds is given, otherwise a classification.
    no_intercept
        Leave the intercept out.
    infer_share : S
        What part of the budget goes to the intervals of --infer. Default: half of it.
    public_data : DATA
        Rows that are public, in the form of DATA, to train a start from; may be given again. They
        are not protected by this fit.
    public_labels : FILE
        Labels of a --public-data .npz that holds none.
    public_rows : DATA
        Rows that are public, in the form of DATA, of which no label is read; may be given again.
        They say which columns go together. They are not protected by this fit.

    Privacy
    -------
    classes : NEG,POS[,...]
        The classes, if they are publicly known. Default: the numbers of --label-map or, without it,
        those in the file, which the statement then says.
    features : D >= 1
        Number of columns, if it is publicly known. Default: taken from the file.
    """

    epsilon: float
    method: str | None = None
    task: str | None = None
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
    prior_standard_error: float | None = None
    public_data: list[str] | None = None
    public_labels: Path | None = None
    public_rows: list[str] | None = None
    given: Given = field(default_factory=dict)

    @property
    def is_regression(self) -> bool:
        """Whether the fit is a regression."""
        said = self.task == "regression" or (self.task is None and self.method == "linear")
        return said or self.target_bounds is not None

    @property
    def chosen(self) -> str:
        """The method that was asked for, or the default."""
        return self.method or default_method(self.is_regression)

    def estimator(self, meaning: Mapping[str, float] | None) -> PrivateLinearModel:
        """Make the estimator; options that were not given keep its own defaults.

        `meaning` is what the labels mean. Classes declared by name wait for `declare`, which knows
        their type.
        """
        made = self._kind()
        chosen = {
            # None is an option that was not given.
            **{name: None if value == "none" else value for name, value in self.given.items()},
            "epsilon": self.epsilon,
            "fit_intercept": not self.no_intercept,
            "random_state": self.random_state,
        }
        chosen["ledger"] = chosen_ledger(self.ledger, self.dataset, self.purpose)
        chosen |= self._of_prior() | self._of_intervals()
        if self.target_bounds is not None:
            chosen["target_bounds"] = parse_target_bounds(self.target_bounds)
        if self.classes is not None:
            parse_classes(self.classes)
        elif meaning is not None and not self.is_regression:
            chosen["classes"] = mapped_classes(meaning)
        check_settings(made, self.chosen, chosen)
        estimator: PrivateLinearModel = made(**chosen)
        return estimator

    def _of_prior(self) -> dict[str, Any]:
        error = self.prior_standard_error
        if self.prior is None:
            if error is not None:
                raise ParameterError(
                    f"`prior_standard_error={error:g}` is the noise of a prior, and there is none",
                    advice="give `prior` too",
                )
            return {}
        return {"prior": self.prior if error is None else Prior(self.prior, standard_error=error)}

    def _of_intervals(self) -> dict[str, Any]:
        columns, share = self.given.get("infer", "none"), self.infer_share
        if share is None:
            return {}
        if columns == "none":
            raise ParameterError(
                f"`infer_share={share:g}` is of intervals, and there are none",
                advice="give `infer` too",
            )
        return {"infer": {"columns": columns, "share": share}}

    def _kind(self) -> Any:
        """Return the estimator's class; refuse options that clash."""
        numbers = self.is_regression
        if self.task not in (None, *_TASKS):
            raise ParameterError(f"`task` must be {' or '.join(_TASKS)}, got {self.task!r}")
        if self.task == _TASKS[0] and self.target_bounds is not None:
            raise ParameterError("`target_bounds` is for a regression, not for a classification")
        if self.public_rows and self.chosen == "frank-wolfe":
            raise ParameterError("`public_rows` is not for frank-wolfe", advice="use lasso")
        if self.public_data and self.prior is not None:
            raise ParameterError(
                "`prior` and `public_data` cannot be combined: each defines where the fit starts",
                advice="pass one of them",
            )
        if self.chosen not in METHODS:
            raise ParameterError(
                f"`method` must be one of {', '.join(METHODS)}, got {self.chosen!r}"
            )
        kind = METHODS[self.chosen][numbers]
        if kind is None:
            right = " or ".join(method for method, kinds in METHODS.items() if kinds[numbers])
            raise ParameterError(f"a {_TASKS[numbers]} takes the method {right}, not {self.chosen}")
        if numbers and self.classes is not None:
            raise ParameterError("a regression has no classes", advice="leave `classes` out")
        return kind

    def declare(self, estimator: PrivateLinearModel, y: NDArray[Any]) -> None:
        """Declare the classes as labels of the data's type; refuse numbers that are no classes."""
        if self.classes is not None:
            estimator.set_params(classes=classes_like(parse_classes(self.classes), y))
        fractions = y.dtype.kind == "f" and bool((y % 1.0 != 0.0).any())
        if fractions and self.task is None and not self.is_regression:
            raise DataError(
                "the labels are numbers with fractions; to learn numbers, declare the interval "
                "that they lie in: --target-bounds LOW,HIGH"
            )

    @property
    def beside(self) -> tuple[Path | None, ...]:
        """Files that a fit reads or writes besides data and outputs."""
        public = self.public_data, self.public_rows
        return (self.ledger, self.prior, *(path for one in public if one for path in expand(one)))

    def read_public(
        self,
        estimator: PrivateLinearModel,
        reading: ReadingOptions,
        train: Dataset,
        bars: output.Bars,
        schema: Schema | None,
    ) -> None:
        """Read the public rows like the others, and pass them to the estimator."""
        same = replace(reading, labels=self.public_labels)

        def read(files: list[str], **labelled: bool) -> Dataset:
            found = same.read(expand(files), bars, train.X.shape[1], schema, **labelled)
            check_same_origin(origin_of(train.X), origin_of(found.X), found.source)
            return found

        if self.public_data:
            found = read(self.public_data)
            estimator.set_params(public_data=(found.X, found.y))
        if self.public_rows:
            estimator.set_params(public_rows=read(self.public_rows, labelled=False).X)


@dataclass(frozen=True)
class OutputOptions:
    """Options for the outputs.

    Output
    ------
    model : OUT
        Write the model here (.npz); needed with --ledger. Default: nothing is written.
    statement : OUT.json
        Write the privacy statement here.
    """

    model: Path | None = None
    statement: Path | None = None
    force: bool = False

    def paths(self) -> list[Path]:
        """List the files that will be written."""
        return [path for path in (self.model, self.statement) if path is not None]

    def refuse_unwritten(self, ledger: Path | None) -> None:
        """Refuse to pay for a model that is not written."""
        if ledger is not None and self.model is None:
            raise typer.BadParameter(
                "--ledger needs --model OUT: what is paid for has to be written"
            )

    def check(self, inputs: Iterable[Path | None], *, charged: bool) -> None:
        """Refuse outputs that cannot be written, or exist without --force."""
        again = ", which is charged again" if charged else ""
        output.check_outputs(self.paths(), inputs, force=self.force, again=again)

    def write(self, estimator: PrivateLinearModel, temporary: str | None = None) -> None:
        """Write all outputs or none; `temporary` is the file reserved for the model."""
        if self.statement is not None:
            output.write_file(self.statement, estimator.privacy_.to_json() + "\n")
        if self.model is not None:
            try:
                write_model(estimator.model_, self.model, temporary=temporary)
            except BaseException:
                if self.statement is not None:
                    self.statement.unlink(missing_ok=True)
                raise


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
    seconds: dict[str, float] = {}
    before = bars.compiled.seconds
    with bars.task(label) as progress, bars.stages() as stage, warnings.catch_warnings():
        for kind in (WeakPrivacyWarning, NoiseWarning):
            warnings.filterwarnings("always", category=kind)
        copied = partial(stage, "copying stores")
        hooks = replace(hooks or Hooks(), progress=progress, seconds=seconds, copied=copied)
        fit_estimator(estimator, X, y, hooks, **more)
    return seconds | {"compile": bars.compiled.seconds - before}


def parse_target_bounds(text: str) -> tuple[float, float]:
    """Read ``--target-bounds``: two numbers, the lower first."""
    try:
        low, high = (float(end) for end in text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not an interval; write --target-bounds LOW,HIGH, for example 0,100"
        ) from None
    return low, high


def mapped_classes(meaning: Mapping[str, float]) -> list[int | float]:
    """Return the numbers of a label map, ascending."""
    numbers = sorted(set(meaning.values()))
    if len(numbers) < 2:
        raise typer.BadParameter(
            f"the label map has {len(numbers)} different numbers; two are needed, "
            "for example neg=0,pos=1"
        )
    return [_plain_number(number) for number in numbers]


def parse_classes(text: str) -> tuple[str, ...]:
    """Split ``NEG,POS,...``; fewer than two labels, or one twice, is wrong usage."""
    labels = [label.strip() for label in text.split(",")]
    if not 2 <= len(set(labels)) == len(labels) or not all(labels):
        raise typer.BadParameter(
            f"{text!r} does not name two different labels; write NEG,POS, for example -1,1, or more"
        )
    return tuple(labels)


def classes_like(labels: tuple[str, ...], y: NDArray[Any]) -> list[Any]:
    """Return declared labels as numbers, bools or strings, by the type of `y` alone."""
    words = {"false": False, "0": False, "true": True, "1": True}
    try:
        if y.dtype.kind == "b":
            return [words[label.lower()] for label in labels]
        if y.dtype.kind in "iuf":
            return [_plain_number(float(label)) for label in labels]
    except (KeyError, ValueError):
        raise DataError(
            f"--classes {','.join(labels)}: the labels in the data are "
            f"{'booleans' if y.dtype.kind == 'b' else 'numbers'}, so the declared ones must be too"
        ) from None
    return list(labels)


def _plain_number(number: float) -> int | float:
    return int(number) if number.is_integer() else number
