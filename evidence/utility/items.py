"""The methods by name, and the page of their figures, docs/utility.md, with its pictures."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidence.cells import CELLS, failed
from evidence.items import ROOT, Item, Recipe, Settings, Table
from evidence.report import fill, grouped, markdown_table, picture, write_files
from evidence.runner import published
from evidence.utility import (
    fits,
    interval_power,
    intervals,
    public_rows,
    public_start,
    rows,
    standard_errors,
)
from evidence.utility.fits import METHODS, auc, n_weights, options
from evidence.utility.panels import over_epsilon, panels, set_message

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# parameters and result of a cell
Found = tuple[Mapping[str, Any], dict[str, Any]]

DATA = ("adult", "adult-crosses")
UNSOURCED = {"rows", "rows-large", "intervals", "interval-power"}  # They make their own
# What needs records of known weights is asked for by name.
ALL = tuple(method for method in METHODS if method != "oracle")
# In the order of the page; others follow.
_TITLES = {
    "adult": "Adult",
    "adult-crosses": "Adult crosses",
    "reuters21578_earnacq": "Reuters",
    "news20_rebuilt": "News20 rebuilt",
    "farm_ads": "Farm Ads",
}
_STYLES = {
    ("logistic", "dense"): ("DPLogisticRegression", "#0072B2", "o-"),
    ("logistic", "1000"): ("  at most 1,000 weights", "#2E8BC0", "o--"),
    ("logistic", "100"): ("  at most 100 weights", "#56B4E9", "o-."),
    ("logistic", "30"): ("  at most 30 weights", "#9AD1F0", "o:"),
    ("lasso", "own"): ("DPLassoClassifier", "#D55E00", "s-"),
    ("dp-sgd", ""): ("DP-SGD", "#009E73", "^-"),
    ("output", ""): ("output perturbation", "#CC79A7", "v-"),
    ("objective", ""): ("objective perturbation", "#8C6BB1", "v--"),
    ("dp-ebm", ""): ("DP-EBM", "#7F7F7F", "<-"),
    ("diffprivlib", ""): ("diffprivlib", "#E69F00", "d-"),
    ("none", ""): ("without privacy", "#000000", "--"),
}
# The size of pictures for a phone, in inches.
NARROW = (4.4, 5.2)
_BLUE, _GREY = "#0072B2", "#7F7F7F"
# The message of the picture on the front page, and the names of its lines: text, place, colour.
BEST_AT_ONE = "At epsilon 1, dplasso is more accurate than every other private method we measured"
_LABELS = (
    ("without privacy", (0.03, 0.86), "#000000"),
    ("dplasso", (0.03, 0.7), _BLUE),
    ("best other\nprivate method", (0.34, 0.25), _GREY),
)
# In tables of all cells alone: methods, and other budgets than these.
_ON_THE_PAGE = (1.0, 0.1)
_UNDRAWN = {("oracle", ""): "true weights"}


def _present(method: str, settings: Settings, results: list[Any]) -> Item:
    given = zip(fits.cells(method, settings), results, strict=True)
    found: list[Found] = [(cell.parameters, result) for cell, result in given if result]
    missing = sorted({f"Left out: {r['left_out']}." for _, r in found if "left_out" in r})
    found = [(about, result) for about, result in found if not failed(result)]
    parts = (_every(found), *missing) if found else tuple(missing)
    return Item(method, f"{METHODS[method]}: test AUC", parts)


def _title(label: str) -> str:
    return _TITLES.get(label, label)


def _words(name: str) -> str:
    """Return the name of a method where it does not stand below the one it belongs to."""
    return f"DPLogisticRegression, {name.strip()}" if name.startswith(" ") else name


def _labels(found: Sequence[Found]) -> list[str]:
    labels = {about["label"] for about, _ in found}
    return [one for one in _TITLES if one in labels] + sorted(labels - set(_TITLES))


def _by_epsilon(found: Sequence[Found], label: str, kind: tuple[str, str]) -> dict[float, Any]:
    """Return the results of a method on a data set, by epsilon."""
    results = {
        float(about["epsilon"]): result
        for about, result in found
        if about["label"] == label and (about["method"], about["size"]) == kind
    }
    return dict(sorted(results.items()))


def _every(found: Sequence[Found]) -> Table:
    """Return the table of all cells."""
    epsilons = sorted({float(about["epsilon"]) for about, _ in found})
    epsilons = epsilons[:-1] if len(epsilons) > 1 and epsilons[-1] == float("inf") else epsilons
    lines: list[list[str]] = []
    names = {kind: style[0] for kind, style in _STYLES.items()} | _UNDRAWN
    for label in _labels(found):
        for kind, name in names.items():
            results = _by_epsilon(found, label, kind)
            if not results:
                continue
            weights = [n_weights(result) for result in results.values()]
            texts = {f"{low:,.0f}" for low in (min(weights), max(weights))}
            shown = " to ".join(sorted(texts, key=lambda text: int(text.replace(",", ""))))
            always = results.get(float("inf"))
            aucs = [always or results.get(epsilon) for epsilon in epsilons]
            aucs = [one and f"{auc(one):.3f}" for one in aucs]
            lines.append([_title(label), _words(name), shown, *(one or "-" for one in aucs)])
    return Table(["data", "method", "weights", *(f"{e:g}" for e in epsilons)], grouped(lines))


def _summary(found: Sequence[Found], epsilon: float) -> Table:
    """Return the table of all methods at one epsilon."""
    labels, lines = _labels(found), []
    for kind, (name, _, _) in _STYLES.items():
        results = [_by_epsilon(found, label, kind) for label in labels]
        shown = [one.get(epsilon) or one.get(float("inf")) for one in results]
        if any(shown):
            aucs = [f"{auc(one):.3f}" if one else "-" for one in shown]
            lines.append([_words(name), *aucs])
    return Table([f"test AUC at epsilon {epsilon:g}", *map(_title, labels)], lines)


def summary_item(found: Sequence[Found], epsilon: float = 1.0) -> Item:
    """Return the table of all methods at one epsilon."""
    return Item(f"utility-{epsilon:g}", "", (_summary(found, epsilon),))


def _best_other(found: Sequence[Found], label: str) -> dict[float, float]:
    """Return the highest AUC of the other private methods on a data set, by epsilon."""
    best: dict[float, float] = {}
    for kind in _STYLES:
        if kind[0] not in ("logistic", "lasso", "none"):
            for epsilon, result in _by_epsilon(found, label, kind).items():
                best[epsilon] = max(best.get(epsilon, 0.0), auc(result))
    return best


def _draw_epsilon(found: Sequence[Found], figure: "Figure", columns: int | None = None) -> None:
    """Draw AUC against epsilon, a panel for each data set that was also fitted without privacy."""
    compared = {about["label"] for about, _ in found if about["method"] == "none"}
    found = [one for one in found if one[0]["label"] in compared]
    for label, axis in panels(figure, _labels(found), _TITLES, columns):
        ours = _by_epsilon(found, label, ("logistic", "dense"))
        other = _best_other(found, label)
        axis.plot([*other], [*other.values()], "s-", color=_GREY, markersize=4)
        axis.plot([*ours], [auc(one) for one in ours.values()], "o-", color=_BLUE, linewidth=2.5)
        _level(axis, _by_epsilon(found, label, ("none", "")), "without privacy")
        over_epsilon(axis)
    for text, place, colour in _LABELS:  # the last panel has them, all have the colours
        axis.text(*place, text, color=colour, fontsize=9, transform=axis.transAxes)
    set_message(figure, BEST_AT_ONE, columns)


def _at_one(found: Sequence[Found], label: str) -> dict[tuple[str, str], Any]:
    """Return the result of each method at epsilon 1, or None."""
    return {kind: _by_epsilon(found, label, kind).get(1.0) for kind in _STYLES}


def _draw_weights(found: Sequence[Found], figure: "Figure") -> None:
    """Draw AUC at epsilon 1 against the number of weights, a panel for each data set."""
    for label, axis in panels(figure, _labels(found), _TITLES):
        at_one = _at_one(found, label)
        own = [one for kind, one in at_one.items() if kind[0] == "logistic" and one]
        points = sorted((n_weights(one), auc(one)) for one in own)
        name, colour, style = _STYLES["logistic", "dense"]
        if points:
            axis.plot(*zip(*points, strict=True), style, color=colour, label=name)
        for kind, one in at_one.items():
            name, colour, style = _STYLES[kind]
            if one and kind[0] != "logistic":
                axis.plot(n_weights(one), auc(one), style[0], color=colour, label=name)
        _level(axis, _by_epsilon(found, label, ("none", "")), "without privacy")
        axis.set_xlim(left=10)
        axis.set_xticks([], minor=True)
        axis.set_xlabel("weights")
    _legend(figure)


def _level(axis: Any, results: Mapping[float, Any], name: str) -> None:
    for result in results.values():
        axis.axhline(auc(result), color="#000000", linewidth=0.9, linestyle="--", label=name)


def _legend(figure: "Figure") -> None:
    shown = {}
    for axis in figure.axes:
        shown |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    handles = list(shown.values())
    where = {"loc": "outside lower center", "ncols": 5, "frameon": False, "fontsize": 8}
    figure.legend(handles, list(shown), **where)  # type: ignore[arg-type]


def collect(folder: Path, kinds: Sequence[str]) -> list[Found]:
    """Return the parameters and results of all kept cells of some kinds, measured to the end."""
    found = []
    for path in sorted((folder / CELLS).glob("*.json")):
        content = json.loads(path.read_text())
        if content["key"]["kind"] in kinds and not failed(content["result"]):
            found.append((content["key"]["parameters"], content["result"]))
    return found


def publish(
    items: Sequence[Item], settings: Settings, folder: Path
) -> Mapping[str, Mapping[str, Path]]:
    """Write the tables and pictures of all that is kept: into docs/, or beside it."""
    found = collect(folder, tuple(METHODS))
    known = [one for one in found if rows.is_known(one[0])]
    found = [one for one in found if not rows.is_known(one[0])]
    errors = collect(folder, ("standard-errors",))
    starts = collect(folder, ("public-start",))
    covered, powers = collect(folder, ("intervals",)), collect(folder, ("interval-power",))
    unlabelled: list[Any] = [*collect(folder, ("public-rows",))]
    if not (found or known or errors or starts or covered or powers or unlabelled):
        return {}
    drawn = _pictures(found)
    tables = [summary_item(found, epsilon) for epsilon in _ON_THE_PAGE] if found else []
    tables += [rows.item(known)] if known else []
    drawn += tables[-1:] if known else []
    few = [one for one in starts if one[0]["epsilon"] in _ON_THE_PAGE]
    few = [one for one in few if not one[0]["start"].startswith("lasso")]
    tables += [public_start.item(few, _TITLES)] if few else []
    tables += [public_rows.item(unlabelled, _TITLES)] if unlabelled else []
    tables += [standard_errors.item(errors)] if errors else []
    tables += [intervals.item(covered)] if covered else []
    tables += [interval_power.item(powers)] if powers else []
    if any(about["kind"] == "20" for about, _ in unlabelled):
        shown = partial(public_rows.draw, unlabelled, _TITLES)
        drawn.append(Item("utility-public-rows", "", (), draw=shown, size=(11.0, 3.3)))
        shown = partial(shown, columns=2)
        drawn.append(Item("utility-public-rows-narrow", "", (), draw=shown, size=NARROW))
    home = folder.resolve() == published("utility")
    place = ROOT / "docs" / "images" if home else folder
    files = {
        one.name: write_files({"svg": picture(one, "svg")}, place, one.name)
        for one in drawn
        if one.draw
    }
    every = [Item("every", "", (_every(found),))] if found else []
    every += [public_start.item(starts, _TITLES)] if starts else []
    if not home:
        text = _text([*every, *tables]).encode()
        return files | {"utility": write_files({"md": text}, folder, "utility")}
    text = f"# Test AUC of every method and budget\n\n{_text(every)}".encode()
    files["every"] = write_files({"md": text}, folder, "every")
    for page in (ROOT / "docs" / f"{name}.md" for name in ("utility", "howto-inference")):
        filled = fill(page.read_text(), tables).encode()
        files[page.name] = write_files({"md": filled}, page.parent, page.stem)
    return files


def _text(tables: Sequence[Item]) -> str:
    return "\n\n".join(markdown_table(one.parts[-1]) for one in tables) + "\n"


def _pictures(found: Sequence[Found]) -> list[Item]:
    """Return the pictures of what was measured on data that no formula made."""
    wide = (12.0, 3.6)
    shown = [one for one in _labels(found) if any(_at_one(found, one).values())]
    at_one = [one for one in found if one[0]["label"] in shown]
    drawn = {
        "utility-epsilon": (_draw_epsilon, found, (11.0, 3.3)),
        "utility-epsilon-narrow": (partial(_draw_epsilon, columns=2), found, NARROW),
        "utility-weights": (_draw_weights, at_one, wide),
    }
    return [
        Item(name, "", (), draw=partial(draw, of), size=size)
        for name, (draw, of, size) in drawn.items()
        if of
    ]


ITEMS = {
    method: Recipe(partial(fits.cells, method), partial(_present, method), options)
    for method in METHODS
} | {
    "standard-errors": Recipe(
        standard_errors.cells, standard_errors.present, standard_errors.options
    ),
    "intervals": Recipe(intervals.cells, intervals.present, intervals.options),
    "interval-power": Recipe(interval_power.cells, interval_power.present, interval_power.options),
    "public-start": Recipe(public_start.cells, public_start.present, public_start.options),
    "public-rows": Recipe(public_rows.cells, public_rows.present, public_rows.options),
    "rows": Recipe(rows.cells, rows.present, rows.options),
    "rows-large": Recipe(
        partial(rows.cells, rows=rows.LARGE), partial(rows.present, rows=rows.LARGE), rows.options
    ),
}
