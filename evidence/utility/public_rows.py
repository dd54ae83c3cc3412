"""What public rows without labels buy: fits with and without them, on the same test rows.

A fifth of all rows is public and without labels, three fifths are private and a fifth tests. Or
there are fewer public rows; or they are of a wrong domain, their columns exchanged for others that
are about as frequent; or a few public rows have labels too and train a prior.
"""

import warnings
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evidence.cells import Advance, Cell
from evidence.datasets import Source, binarized
from evidence.items import Item, Settings, Table
from evidence.report import grouped
from evidence.utility.fits import DELTA, EPSILONS, split
from evidence.utility.panels import over_epsilon, panels, set_message

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The message of the picture.
MESSAGE = "Public rows without labels help most when epsilon is small"
TITLE = "Test AUC of private rows alone, and with public rows without labels"
KINDS = {
    "20": "20 % of all rows",
    "5": "5 % as many as private rows",
    "permuted": "20 %, columns exchanged",
    "prior": "20 %, and 1 % of the private rows as `public_data`",
    "lasso": "20 % of all rows, `DPLassoClassifier`",
    "lasso-permuted": "20 %, columns exchanged, `DPLassoClassifier`",
}
_ALL = [*KINDS]
# Parts of the training rows that are public; of columns ordered by frequency, so many are
# exchanged with each other.
_PUBLIC, _FEW, _LABELLED, _ALIKE = 0.25, 0.0476, 0.01, 200
_DRAWS = 5
_FEWEST = 20


def options(
    *, epsilons: list[float] = EPSILONS, draws: int = _DRAWS, kinds: list[str] = _ALL
) -> None:
    """Name the options."""


@dataclass(frozen=True)
class Compared:
    """Fit with and without public rows."""

    kind: str
    epsilon: float
    draws: int
    own_test: int
    n_jobs: int

    def __call__(self, X: Any, y: NDArray[Any], advance: Advance) -> dict[str, Any]:
        from sklearn.metrics import roc_auc_score

        from dplasso import DPLassoClassifier, DPLogisticRegression

        model = DPLassoClassifier if self.kind.startswith("lasso") else DPLogisticRegression
        training, test = split(X.shape[0], self.own_test)
        X, runs = binarized(X), []
        for draw in range(self.draws):
            rng = np.random.default_rng(2_000 + draw)
            order = rng.permutation(training)
            n_public = round((_FEW if self.kind == "5" else _PUBLIC) * order.size)
            public, private = X[order[:n_public]], order[n_public:]
            if self.kind.endswith("permuted"):
                public = _exchanged(public, rng)
            given: dict[str, Any] = {"classes": (0, 1), "random_state": draw, "n_jobs": self.n_jobs}
            if self.kind == "prior":
                n_labelled = max(_FEWEST, round(_LABELLED * private.size))
                labelled, private = private[:n_labelled], private[n_labelled:]
                given["public_data"] = X[labelled], y[labelled]
            aucs = {}
            for name, more in (("alone", {}), ("with", {"public_rows": public})):
                estimator = model(self.epsilon, DELTA, **given, **more)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    estimator.fit(X[private], y[private])
                aucs[name] = float(roc_auc_score(y[test], estimator.decision_function(X[test])))
            runs.append(aucs)
            advance((draw + 1) / self.draws)
        return {"runs": runs, "public_rows": n_public, "private_rows": int(private.size)}


def _exchanged(rows: Any, rng: np.random.Generator) -> Any:
    """Return rows whose columns are exchanged for others that are about as frequent."""
    from scipy.sparse import csr_array

    n_columns = rows.shape[1]
    by_frequency = np.argsort(-np.bincount(rows.indices, minlength=n_columns), kind="stable")
    other = np.empty(n_columns, dtype=rows.indices.dtype)
    for begin in range(0, n_columns, _ALIKE):
        alike = by_frequency[begin : begin + _ALIKE]
        other[alike] = rng.permutation(alike)
    found = csr_array((rows.data, other[rows.indices], rows.indptr), shape=rows.shape)
    found.sort_indices()
    return found


def cells(settings: Settings) -> list[Cell]:
    """List the data sets, kinds of public rows and budgets."""
    epsilons = settings.options.get("epsilons", EPSILONS[2:3] if settings.quick else EPSILONS)
    kinds = settings.options.get("kinds", _ALL)
    return [
        _cell(source, kind, epsilon, settings)
        for source in settings.sources
        for kind in kinds
        for epsilon in epsilons
    ]


def _cell(source: Source, kind: str, epsilon: float, settings: Settings) -> Cell:
    draws = settings.options.get("draws", _DRAWS)
    given = {"kind": kind, "epsilon": epsilon, "draws": draws}
    parameters = {**given, "delta": DELTA, "label": source.label, "title": source.title}
    measure = Compared(**given, own_test=source.own_test, n_jobs=settings.n_jobs)
    name = f"{kind}-{epsilon:g}"
    return Cell("public-rows", name, measure, parameters, source, source.entries * draws)


def present(settings: Settings, results: list[Any]) -> Item:
    """Lay out the table."""
    measured = [(one.parameters, r) for one, r in zip(cells(settings), results, strict=True) if r]
    return item([(dict(parameters), result) for parameters, result in measured])


def item(measured: list[tuple[dict[str, Any], dict[str, Any]]], titles: Any = None) -> Item:
    """Return the table of cells by their parameters and results."""
    titles = titles or {}
    epsilons = sorted({about["epsilon"] for about, _ in measured})
    rows = []
    for label in _labels(measured, titles):
        for kind, words in KINDS.items():
            found = _by_epsilon(measured, label, kind)
            if found:
                both = [_both(found.get(epsilon)) for epsilon in epsilons]
                rows.append([titles.get(label, label), words, *both])
    head = ["data", "public rows", *(f"{epsilon:g}" for epsilon in epsilons)]
    about = "Of each budget: without public rows, then with them."
    return Item("public-rows", TITLE, (about, Table(head, grouped(rows))))


def draw(measured: list[Any], titles: Any, figure: "Figure", columns: int | None = None) -> None:
    """Draw AUC against epsilon with and without public rows, a panel for each data set."""
    for label, axis in panels(figure, _labels(measured, titles), titles, columns):
        by_epsilon = _by_epsilon(measured, label, "20")
        for name, colour in (("with", "#0072B2"), ("alone", "#7F7F7F")):
            aucs = [mean(run[name] for run in runs) for runs in by_epsilon.values()]
            axis.plot([*by_epsilon], aucs, "o-", color=colour, markersize=3)
        over_epsilon(axis)
    # The last panel names the lines of all, with room above them.
    figure.axes[-1].margins(y=0.2)
    last = {"fontsize": 9, "transform": figure.axes[-1].transAxes}
    figure.axes[-1].text(0.03, 0.88, "with public rows", color="#0072B2", **last)
    figure.axes[-1].text(0.42, 0.35, "without", color="#7F7F7F", **last)
    set_message(figure, MESSAGE, columns)


def _labels(measured: list[Any], titles: Any) -> list[str]:
    labels = {about["label"] for about, _ in measured}
    return [one for one in titles if one in labels] + sorted(labels - set(titles))


def _by_epsilon(measured: list[Any], label: str, kind: str) -> dict[float, list[dict[str, float]]]:
    found = {
        about["epsilon"]: result["runs"]
        for about, result in measured
        if (about["label"], about["kind"]) == (label, kind)
    }
    return dict(sorted(found.items()))


def _both(runs: list[dict[str, float]] | None) -> str:
    if runs is None:
        return "-"
    return " / ".join(f"{mean(run[name] for run in runs):.3f}" for name in ("alone", "with"))
