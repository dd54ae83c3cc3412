"""Noisy gradient descent as a method: from parameters to a plan."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dplasso.encoding.origin import one_hot_groups
from dplasso.errors import ParameterError
from dplasso.fit.method import Method, checked_count, common_parameters, word_or_number
from dplasso.fit.named_columns import learn_predictions
from dplasso.fit.public_knowledge import find_named
from dplasso.fit.task import Labels, Task
from dplasso.gradient_descent.calibration import LEARNT, LEARNT_WITH_DIRECTIONS
from dplasso.gradient_descent.schedule import (
    CALIBRATION_SHARE,
    MOST_STEPS,
    plan_stages,
    with_directions,
)
from dplasso.losses.loss import DEVIATIONS, class_shares
from dplasso.phases.count import count, counted_of, levels
from dplasso.phases.course import Course, Descent, beyond
from dplasso.phases.descend import gradient_phases
from dplasso.phases.intervals import MOST_COLUMNS, inference, named_columns
from dplasso.phases.moments import Infer, OneHot, read_infer
from dplasso.phases.pairs import PAIRS_SHARE, columns_of, stages_with
from dplasso.phases.phase import Phase, Plan
from dplasso.phases.released import Released
from dplasso.phases.releases import Centred, Counted
from dplasso.privacy.budget import Budget
from dplasso.privacy.parameters import share_bits

# With a larger epsilon, a fit of many columns follows the errors of y (docs/howto-inference.md).
_FOLLOWS = 30.0


@dataclass(frozen=True, kw_only=True)
class GradientDescent(Method):
    """Parameters of a fit by noisy gradient descent.

    `max_weights`: None for all. `one_hot`: groups with a reference category.
    """

    max_weights: int | None
    infer: Infer
    one_hot: OneHot = ()

    many_labels: ClassVar[bool] = True
    column_bytes: ClassVar[int] = 48

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        method = cls(
            **common_parameters(params),
            infer=checked_infer(params),
            max_weights=checked_count(params, "max_weights"),
            norm_bound=word_or_number(
                params,
                "row_norm",
                {"unit": None},
                lambda norm: 0 < norm < math.inf,
                "'unit' or a number > 0",
            ),
        )
        if method.infer.named and method.learn_geometry is not None:
            if isinstance(method.targets, Labels):
                raise ParameterError(
                    "`infer` with `public_rows` is for regressions: what a private fit misses "
                    "weakens log odds ratios",
                    advice="fit DPLinearRegression(target_bounds=(-0.5, 1.5)) to y as 0 and 1",
                )
            learn = learn_predictions(params["public_rows"], method.infer.named)
            return replace(method, learn_geometry=learn)
        if method.learn_geometry is not None and method.norm_bound is not None:
            raise ParameterError(
                f"`public_rows` needs rows of unit length, got `row_norm={method.norm_bound:g}`",
                advice="leave out one of them",
            )
        return method

    def starting(self, task: Task, records: Any) -> Self:
        """Return the method with its prior; ParameterError where no intervals can follow."""
        if self.infers and task.n_outputs > 1:
            raise ParameterError(
                f"`infer` takes two classes or a regression, and y has {task.n_outputs} classes or "
                "labels; fit one of them against the rest"
            )
        if self.infers and not self.predicts_named and records.shape[1] > MOST_COLUMNS:
            raise ParameterError(
                f"`infer` takes at most {MOST_COLUMNS} columns without `public_rows`, and X has "
                f"{records.shape[1]:,}; noise hides which of more columns confound",
                advice="name a few columns of a regression and pass `public_rows`",
            )
        if self.predicts_named and self.epsilon > _FOLLOWS and records.shape[1] > MOST_COLUMNS:
            raise ParameterError(
                f"`infer` among more than {MOST_COLUMNS} columns needs an epsilon of at most "
                f"{_FOLLOWS:g}, got {self.epsilon:g}; with less noise, the fit follows errors of y"
            )
        if self.infer.named and len(find_named(self.infer.named, records)) > MOST_COLUMNS:
            raise ParameterError(f"`infer` may name at most {MOST_COLUMNS} columns")
        method = super().starting(task, records)
        return replace(method, one_hot=one_hot_groups(records)) if self.infers else method

    def plan(self, task: Task, n_features: int) -> Plan:
        """Count, scale, descend and calibrate; a short list is selected between."""
        # A statement before the fit is that of the widest spread.
        task = task.spread(1.0, math.inf)
        loss, most = task.gradient_loss(task.gradient_bound), self.max_weights
        stages = plan_stages(most, n_features, task.kappa)
        first, vertex_loss = self._counting(task)
        counting = self.counting(task, first)
        calibration = CALIBRATION_SHARE if self.from_prior else task.calibration
        fitted = 1.0 - self.infer.share
        mixes = self.learn_geometry is not None and not self.predicts_named
        geometry = self.geometry if mixes else None
        # Cuts, priors, latent directions and intervals need all columns.
        whole = self.from_prior or self.learn_geometry is not None or self.infers
        chooses = most is None and not whole
        blocks = self.pairs if chooses and self.norm_bound is None else ()

        def course(released: Released, budget: Budget) -> Course:
            counted, entered = counted_of(released), released.drawn_columns
            own_task = self.spread(task, released, budget)
            n_columns = n_features if entered is None else entered.size
            own: Any = plan_stages(most, n_columns, own_task.kappa)
            share = fitted - math.fsum(entry.share for entry in released.entries[: len(counting)])
            if blocks:
                signal = counted.total * budget.mu_of(share) / budget.moved(1.0)
                own = stages_with(blocks, own[0], signal, task.n_outputs)
            own_loss = own_task.gradient_loss(own_task.gradient_bound)
            weighted, constant = (own_loss, counted.total), np.zeros(0)
            if self.targets.is_balanced:
                weighted = self._balanced(task, counted)
            elif vertex_loss is not None:
                margins = vertex_loss.starting_offset(counted.counts, counted.deviation)
                # The calibration finds the rest; centred columns move margins around the start.
                later = task.calibration and released.last(Centred) is None
                constant = beyond(margins, stages[-1].kappa if later else 0.0)
            return Course(
                *weighted,
                counted.total,
                share,
                tuple(own if released.mix is None else with_directions(own)),
                calibration,
                start=CALIBRATION_SHARE if self.from_prior else 0.0,
                pairs=PAIRS_SHARE if blocks and own[1] is not None else 0.0,
                learnt=LEARNT if geometry is None else LEARNT_WITH_DIRECTIONS,
                constant=constant,
            )

        descent = Descent(
            course=course,
            fit_intercept=self.fit_intercept,
            norm_bound=self.norm_bound,
            from_prior=self.from_prior,
            n_columns=n_features,
            loss=loss,
            geometry=geometry,
            keeps_lengths=task.keeps_lengths(stages[-1].n_columns if len(stages) > 1 else 0),
        )
        most_of_each = [(stage.n_steps, stage.n_columns) for stage in stages]
        if blocks:
            most_of_each *= 2
        if mixes and most is not None:
            most_of_each = [(MOST_STEPS, n_features), *most_of_each[1:]]
        calibrates = calibration > 0.0
        phases = gradient_phases(
            descent,
            most_of_each,
            calibrates=calibrates,
            mixes=mixes,
            measures=self.measures_columns,
            blocks=blocks,
        )
        if chooses and (self.levels or blocks):
            entering = levels(self.levels, n_features, task.n_outputs, columns_of(blocks))
            phases = (entering, *phases)
        if self.infers:
            unclipped = task.gradient_loss(task.inference_bound)
            common = descent, unclipped, self.infer.share
            if self.predicts_named:
                phases += (named_columns(*common, self.geometry),)
            else:
                phases += inference(*common, self.one_hot)
        return Plan((*counting, *phases), descent.lay_out)

    def _counting(self, task: Task) -> tuple[Phase, Any]:
        """Return the phase that counts records, and the loss that its counts start; None for N."""
        # A prior has intercepts of its own, but a spread is that around the mean. A record may have
        # many labels.
        balances = self.fit_intercept and not task.many_labels
        balances &= task.spreads or not self.from_prior
        if self.targets.is_balanced or (self.is_private and balances):
            vertex_loss = task.vertex_loss(task.bound)
            counting = count(task, vertex_loss, share=self.count_share(task))
            return counting, None if self.from_prior else vertex_loss
        return count(task), None

    @property
    def predicts_named(self) -> bool:
        """Whether public rows predict the columns that `infer` names."""
        return bool(self.infer.named) and self.learn_geometry is not None

    def fitted_share(self, task: Task) -> float:
        return super().fitted_share(task) - self.infer.share

    @property
    def infers(self) -> bool:
        """Whether intervals follow the fit."""
        return self.infer.share > 0.0

    def _balanced(self, task: Task, counted: Counted) -> tuple[Any, float]:
        """Return the loss of classes that weigh the same by their counts, and what all weigh."""
        # No count is then mostly noise.
        counts = counted.counts + DEVIATIONS * counted.deviation
        shares = class_shares(counts, 0.0)
        weights = shares.min() / shares
        weight = min(counted.total, float(weights @ counts))
        # For more records, shares of sums have fewer bits.
        same = share_bits(counted.total) == share_bits(weight)
        task = replace(self.targets, weight=weights.tolist()).of_classes(task.classes)
        loss = task.gradient_loss(task.gradient_bound)
        return loss, weight if same else counted.total


def checked_infer(params: Mapping[str, Any]) -> Infer:
    """Return the parameter `infer`; ParameterError for parameters that exclude intervals."""
    infer = read_infer(params["infer"])
    if not infer.share:
        return infer
    if params["row_norm"] == "unit":
        raise ParameterError(
            "`infer` needs `row_norm` to be a number, a public bound on the L2 norm of a row. With "
            "'unit' every row is divided by its own length, and coefficients are not in the units "
            "of the columns"
        )
    for name in ("max_weights", "class_weight", "prior", "public_data"):
        if params.get(name) is not None:
            raise ParameterError(
                f"`infer` and `{name}` cannot be combined: intervals are those of the plain loss "
                "in all columns. Leave one of them out"
            )
    return infer
