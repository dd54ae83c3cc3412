"""Coefficients with intervals that include noise and sampling error."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dplasso.encoding.origin import column_names, is_named
from dplasso.errors import ParameterError, shown
from dplasso.model.file import Model
from dplasso.model.weights import given_names, target_unit
from dplasso.phases.moments import Moments, NamedSums, read_infer

INTERCEPT = "(intercept)"
_WIDTH, _NAME = 80, 22


@dataclass(frozen=True, repr=False)
class Inference:
    """Estimates of the coefficients, each with its error.

    Arrays have one number for each column and, if the fit has an intercept, a last one for it. A
    coefficient that the data do not identify at this budget has NaN everywhere. Reference
    categories have no coefficient and are left out: those of the other categories of their variable
    are differences from them.

    Attributes
    ----------
    names : ndarray of str, shape (n,)
        Names of the columns, ``x0`` and so on where they have none, then ``(intercept)``.
    coef : ndarray, shape (n,)
        Coefficients in the units of the columns, and of the target in a regression.
    standard_error : ndarray, shape (n,)
        Standard errors: the root of the squared sum of the next two.
    noise_error, sampling_error : ndarray, shape (n,)
        Parts of the standard error: by the noise, and because the records are a sample.
    identified : ndarray of bool, shape (n,)
        Whether noise leaves the coefficient identified.
    learns_classes : bool
        Whether coefficients are logarithms of odds ratios.
    title : str
        First lines of `summary`.
    references : tuple of str
        Names of the columns that are reference categories.
    """

    names: NDArray[np.object_]
    coef: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    noise_error: NDArray[np.float64]
    sampling_error: NDArray[np.float64]
    identified: NDArray[np.bool_]
    learns_classes: bool
    title: str
    references: tuple[str, ...] = ()

    @property
    def z(self) -> NDArray[np.float64]:
        """Coefficients over their standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.coef / self.standard_error

    @property
    def p_value(self) -> NDArray[np.float64]:
        """Two-sided p-values of the hypothesis that a coefficient is zero."""
        p_values: NDArray[np.float64] = 2.0 * ndtr(-np.abs(self.z))
        return p_values

    @property
    def low(self) -> NDArray[np.float64]:
        """Lower ends of the 95 % intervals."""
        return self.conf_int()[:, 0]

    @property
    def high(self) -> NDArray[np.float64]:
        """Upper ends of the 95 % intervals."""
        return self.conf_int()[:, 1]

    @property
    def not_identified(self) -> list[str]:
        """Names of the coefficients without an estimate."""
        return [str(name) for name in self.names[~self.identified]]

    def conf_int(self, level: float = 0.95) -> NDArray[np.float64]:
        """Return the intervals.

        Parameters
        ----------
        level : float, default=0.95
            Probability that an interval covers its coefficient, in (0, 1).

        Returns
        -------
        ndarray, shape (n, 2)
            Lower and upper ends.

        Raises
        ------
        ValueError
            For a level outside (0, 1).
        """
        if not 0.0 < level < 1.0:
            raise ParameterError(f"`level` must be between 0 and 1, got {shown(level)}")
        reach = float(ndtri(0.5 + 0.5 * level)) * self.standard_error
        return np.column_stack([self.coef - reach, self.coef + reach])

    def odds_ratios(self, level: float = 0.95) -> NDArray[np.float64]:
        """Return the odds ratios with their intervals.

        Parameters
        ----------
        level : float, default=0.95
            As of `conf_int`.

        Returns
        -------
        ndarray, shape (n, 3)
            Ratios, lower and upper ends.

        Raises
        ------
        ValueError
            For a regression, which has none, and as `conf_int`.
        """
        if not self.learns_classes:
            raise ParameterError("a linear regression has no odds ratios; use `coef`")
        with np.errstate(over="ignore"):
            return np.exp(np.column_stack([self.coef, self.conf_int(level)]))

    def adjusted_p_values(self, method: str = "holm") -> NDArray[np.float64]:
        """Return p-values adjusted for the number of columns; the intercept is not one of them.

        Parameters
        ----------
        method : {"holm", "benjamini-hochberg"}, default="holm"
            Holm bounds the probability of any false discovery, Benjamini-Hochberg their share.

        Returns
        -------
        ndarray, shape (n,)
            NaN for the intercept and for columns that are not identified.

        Raises
        ------
        ValueError
            For another method.
        """
        if method not in _ADJUSTED:
            right = " or ".join(map(repr, _ADJUSTED))
            raise ParameterError(f"`method` must be {right}, got {shown(method)}")
        tested = self.identified & (self.names != INTERCEPT)
        adjusted = np.full(self.coef.size, math.nan)
        if tested.any():
            adjusted[tested] = _ADJUSTED[method](self.p_value[tested])
        return adjusted

    def rows(self) -> list[dict[str, Any]]:
        """Return the table as JSON holds it, a row for each coefficient; None for NaN."""
        numbers = ("coef", "standard_error", "z", "p_value", "low", "high")
        parts: dict[str, list[Any]] = {"name": [str(name) for name in self.names]}
        for name in (*numbers, "noise_error", "sampling_error"):
            each = getattr(self, name).tolist()
            parts[name] = [number if math.isfinite(number) else None for number in each]
        parts["identified"] = self.identified.tolist()
        return [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame, indexed by name."""
        import pandas as pd

        return pd.DataFrame(self.rows()).set_index("name").astype({"identified": bool})

    def summary(self) -> str:
        """Return the table as text of 80 columns."""
        heads = f"{'':{_NAME}}{'coef':>10}{'std err':>10}{'z':>8}{'P>|z|':>8}"
        lines = [self.title, "", f"{heads}{'[0.025':>11}{'0.975]':>11}", "-" * _WIDTH]
        for row in self.rows():
            if not row["identified"]:
                cells = f"{'not identified':>{_WIDTH - _NAME}}"
            else:
                z, p_value = row["z"] or 0.0, 1.0 if row["p_value"] is None else row["p_value"]
                cells = (
                    f"{row['coef']:>10.4g}{row['standard_error']:>10.4g}{z:>8.2f}{p_value:>8.3f}"
                )
                cells += f"{row['low']:>11.4g}{row['high']:>11.4g}"
            lines.append(f"{row['name'][: _NAME - 1]:{_NAME}}{cells}")
        lines.append("-" * _WIDTH)
        if self.references:
            names = ", ".join(self.references)
            lines.append(_paragraph(f"Reference categories, whose coefficient is 0: {names}."))
        if missing := self.not_identified:
            names = ", ".join(missing) if self.identified.any() else "all of them"
            about = "See docs/howto-inference.md."
            lines.append(_paragraph(f"Not identified at this budget: {names}. {about}"))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()


def inference_of(model: Model) -> Inference | None:
    """Return the estimates of a model that was fitted with `infer`; None for any other.

    If `infer` names columns, the estimates are those of these columns and variables.
    """
    sums = model.released.last(NamedSums) or model.released.last(Moments)
    if sums is None:
        return None
    estimate, (unit, middle) = sums.estimate(), target_unit(model)
    scales = unit * sums.units
    parts = [np.sqrt(np.diag(part)) * scales for part in (estimate.noise, estimate.sampling)]
    coef, title = estimate.coefficients * scales, _title(model)
    every = column_names(given_names(model), model.schema, model.n_features)
    names = np.array(every, dtype=object)
    if isinstance(sums, NamedSums):
        shown, references = np.ones(coef.size, dtype=np.bool_), names[sums.references]
        title += "\n" + _paragraph(
            f"The fit adjusts for {sums.n_adjusted:,} of {names.size:,} columns, with predictions "
            f"from {sums.n_public:,} public rows."
        )
        names = names[sums.places]
    else:
        if sums.constant:
            names = np.append(names, INTERCEPT)
            coef[-1] += middle
        shown = np.ones(names.size, dtype=np.bool_)
        if named := read_infer(model.params["infer"]).named:
            shown[:] = [is_named(name, named) for name in names]
        places = sums.references[shown[sums.references]]
        shown[places], references = False, names[places]
    identified = estimate.identified[shown]
    coef, noise, sampling = (np.where(identified, part[shown], math.nan) for part in (coef, *parts))
    return Inference(
        names[shown],
        coef,
        np.hypot(noise, sampling),
        noise,
        sampling,
        identified,
        model.statement.target_bounds is None,
        title,
        tuple(map(str, references)),
    )


def _paragraph(text: str) -> str:
    return fill(text, _WIDTH, break_on_hyphens=False)


def _title(model: Model) -> str:
    statement = model.statement
    kind = "Logistic regression" if statement.target_bounds is None else "Linear regression"
    if statement.target_bounds is None:
        kind += f" of {model.classes[1]} against {model.classes[0]}"
    lines = [f"{kind[:_WIDTH]}"]
    if model.n_records is not None:
        lines.append(f"epsilon {statement.epsilon:.4g}, about {model.n_records:,.0f} records")
    lines.append("Standard errors and intervals hold the noise and the sampling error.")
    return "\n".join(lines)


def _holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    order, count = np.argsort(p_values), p_values.size
    stepped = np.maximum.accumulate(p_values[order] * np.arange(count, 0, -1))
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(1.0, stepped)
    return adjusted


def _benjamini_hochberg(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.stats import false_discovery_control

    adjusted: NDArray[np.float64] = false_discovery_control(p_values)
    return adjusted


_ADJUSTED: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "holm": _holm,
    "benjamini-hochberg": _benjamini_hochberg,
}
