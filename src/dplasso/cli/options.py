"""Options, read off signatures and docstrings: of the commands, and of the estimators.

A docstring has one section for each panel of ``--help``. In it stand the options, as numpydoc puts
parameters: a line ``name : METAVAR >= smallest value``, and indented below it the help. A section
of examples has command lines and, after a blank line, a remark; a section "Most needed" has the
names of the options that ``--help`` shows where the others wait for ``--help-all``. What a
command's docstring does not describe is described by the first of these that does: the texts that
commands share (`SHARED`), and the estimators' docstrings.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from inspect import Parameter, Signature, cleandoc, signature
from operator import itemgetter
from typing import Annotated, Any, NamedTuple, get_args

import typer

from dplasso.cli.sources import StandIn, names_of

Given = Mapping[str, Any]
"""Stands for an option for each parameter of the estimators; those that were given."""

# Options that are not called --the-same as the parameter.
SPELT = {
    "as_json": "--json",
    "fit_intercept": "--no-intercept",
    "groups": "--person-column",
    "header": "--header/--no-header",
    "labels_path": "--labels",
    "n_features": "--features",
    "n_jobs": "--jobs",
    "None": "none",
    "random_state": "--seed",
    "y": "the label column",
}
# Parameters of the estimators that shape the model; the others are about privacy.
_OF_THE_MODEL = (
    *("drift_tol", "infer", "l1_radius", "max_weights", "n_iter", "n_jobs", "selector", "solver"),
)
# Without an option, because files hold no weights; or with one that is written another way.
_NOT_GENERATED = (
    "class_weight",
    "fit_intercept",
    "public_data",
    "public_rows",
    "verbose",
    "weight_bound",
)
# How much of a parameter's docstring ``--help`` shows.
_SENTENCES = 2

SHARED = """
Arguments
---------
data : DATA...
    svmlight text (plain, .gz, .bz2, .xz, .zst), a scipy sparse .npz, or a table with a schema (CSV,
    JSON lines, Parquet, Arrow). Several files, or a quoted pattern such as 'part-*.svm.gz', are one
    data set. Or one store made by convert, which is read from the disk as it is needed; with
    --cluster many stores, also on object storage.
ledger_file : LEDGER
    The ledger's file.
model : MODEL
    A model written by fit.
name : NAME
    The data set's name.

Options
-------
as_json
    Print one JSON object on standard output and nothing else.
jobs : N >= 1
    Threads. Default: all cores.

Model
-----
method : logistic|linear|lasso|frank-wolfe
    logistic, or linear for a regression (default): a weight for every column, each with a standard
    error, by noisy gradient descent; more accurate on most data. lasso: few weights, for columns
    too many to hold a weight each. frank-wolfe: the steps of the paper on an L1 ball.
n_iter : T
    frank-wolfe: steps, and the most weights that the model can have.
prior : FILE
    Start from a model that is public: one written by fit, or a .csv with the columns name and
    weight (perhaps class; a row (intercept)). The people behind it are not protected by this fit.
prior_standard_error : X
    Standard deviation of the prior's weights by noise; a model written by fit says it itself.

Privacy
-------
dataset : NAME
    The data set in the ledger; not needed where there is only one.
delta : D
    Probability with which the epsilon guarantee may fail. Choose it well below one over the number
    of people.
epsilon : E
    Privacy budget of the whole fit; smaller is more private. inf: no privacy at all.
explain
    Print the whole privacy statement instead of two lines of it.
ledger : LEDGER
    Charge this ledger before the work begins (see dplasso ledger).
neighbors : add-remove|replace-one|label
    Which data sets are neighbours: one record added or removed, one replaced by another, or one
    label replaced: features are public then.
person_column : NAME
    Tables: the column that says which person a row belongs to. At most --rows-per-person rows of
    each person enter a fit.
purpose : TEXT
    What the model is for, for the ledger alone.
random_state : N >= 0
    Make the run repeatable, for experiments: a seeded run is not private.
rows_per_person : M >= 1
    Rows of one person, at most: the guarantee then covers a person.
target_bounds : LOW,HIGH
    For a regression: the public interval of the targets; targets outside it are clipped.

Output
------
force
    Overwrite existing outputs.
"""


@dataclass(frozen=True)
class Text:
    """What ``--help`` says of an option: where, how its value is called, its least value, words."""

    panel: str
    metavar: str
    least: int | None = None
    help: str = ""
    aliases: tuple[str, ...] = ()


class Documented(NamedTuple):
    """What a docstring says: summary, texts of options by name, examples, what is needed most."""

    summary: str
    texts: dict[str, Text]
    epilog: str
    most_needed: tuple[str, ...] = ()


def documented(docstring: str | None) -> Documented:
    """Read a docstring."""
    lines = cleandoc(docstring or "").splitlines()
    summary: list[str] = []
    examples: list[str] = []
    most_needed: list[str] = []
    panel, texts, name = "", {}, ""
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and not below.strip("-"):
            panel = line
        elif line and not line.strip("-"):
            continue
        elif panel in ("", "Examples"):
            (examples if panel else summary).append(line)
        elif panel == "Most needed":
            most_needed += line.replace(",", " ").split()
        elif line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            name, *aliases = names.split(", ")
            metavar, _, least = kind.partition(" >= ")
            texts[name] = Text(panel, metavar, int(least) if least else None, "", tuple(aliases))
        elif line:
            texts[name] = replace(texts[name], help=f"{texts[name].help} {line.strip()}".strip())
    return Documented("\n".join(summary).strip(), texts, _epilog(examples), tuple(most_needed))


def _epilog(lines: list[str]) -> str:
    """Lay out command lines, and a paragraph after them, as Typer's epilog."""
    commands, _, note = "\n".join(lines).strip().replace("\n    ", " ").partition("\n\n")
    if not commands:
        return ""
    shown = (f"[cyan]$ {command}[/cyan]" for command in commands.splitlines())
    return "\n\n".join(["[bold]Examples[/bold]", *shown, *(["\n" + note] if note else [])])


def option_name(parameter: str, value: str | None = None) -> str:
    """Return how the option for a parameter is called, and how it is written with a value."""
    called = SPELT.get(parameter, "--" + parameter.replace("_", "-"))
    return called if value is None else f"{called} {value.strip(chr(39))}"


def with_options(command: StandIn) -> Callable[..., None]:
    """Return a command as Typer takes it: one parameter, with its text, for each option.

    A parameter that is a dataclass stands for the options that are its fields. A command that
    returns something has ``--json``, and what it returns is printed in either way
    (`dplasso.cli.output.Result`).
    """
    texts = documented(SHARED).texts
    options, arguments = _expanded(command, texts)
    if signature(command).return_annotation is not None:
        options.append(_declared("as_json", bool, False, texts))

    def run(**given: Any) -> None:
        result = command.load()(**arguments(given))
        if result is not None:
            result.print(as_json=given["as_json"])

    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    return run


def _expanded(
    owner: StandIn, texts: dict[str, Text]
) -> tuple[list[Parameter], Callable[[Mapping[str, Any]], dict[str, Any]]]:
    """Return options for what a command or a dataclass takes, and what makes its arguments."""
    texts, parameters = texts | documented(owner.__doc__).texts, signature(owner).parameters
    options: list[Parameter] = []
    makers: dict[str, Callable[[Mapping[str, Any]], Any]] = {}
    for name, parameter in parameters.items():
        kind = parameter.annotation
        if isinstance(kind, StandIn):
            more, arguments = _expanded(kind, texts)
            makers[name] = partial(
                lambda kind, of, given: kind.load()(**of(given)), kind, arguments
            )
        elif kind == Given:
            more = estimator_options(parameters)
            makers[name] = partial(_given, [one.name for one in more])
        else:
            more, makers[name] = [_declared(name, kind, parameter.default, texts)], itemgetter(name)
        options += more
    return options, lambda given: {name: make(given) for name, make in makers.items()}


def _given(names: list[str], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in names if given[name] is not None}


def _declared(name: str, kind: Any, default: Any, texts: dict[str, Text]) -> Parameter:
    """Return one option, or one argument, as Typer takes it."""
    text = texts[name] if name in texts else estimator_parameters()[name][0]
    info: Any
    if text.panel == "Arguments":
        info = typer.Argument(metavar=text.metavar, help=text.help, show_default=False)
    else:
        info = typer.Option(
            *map(option_name, (*text.aliases, name)),
            help=text.help,
            metavar=text.metavar or None,
            min=text.least,
            hidden=text.panel == "Hidden",
            rich_help_panel=None if text.panel == "Options" else text.panel,
        )
    return _keyword(name, default=default, annotation=Annotated[kind, info])


_keyword = partial(Parameter, kind=Parameter.KEYWORD_ONLY)


# --- the estimators' parameters ------------------------------------------------------------------


@cache
def estimator_parameters() -> dict[str, tuple[Text, Parameter]]:
    """Return text and option of each parameter of the estimators, by name."""
    methods = names_of("dplasso.estimators.cost")["METHODS"]
    takers: dict[str, dict[str, tuple[Parameter, Text, Collection[str]]]] = {}
    for method, kinds in methods.items():
        for estimator in filter(None, kinds):
            texts, parameters = documented(estimator.__doc__).texts, signature(estimator).parameters
            for name, parameter in parameters.items():
                text = texts.get(name, Text("", ""))
                takers.setdefault(name, {}).setdefault(method, (parameter, text, parameters))
    return {
        name: _described(*next(iter(of.values())), [] if of.keys() == methods.keys() else [*of])
        for name, of in takers.items()
    }


def _described(
    parameter: Parameter, text: Text, others: Collection[str], methods: list[str]
) -> tuple[Text, Parameter]:
    """Return text and option, None unless it is given; `methods` take it, unless all do."""
    name, kind = parameter.name, parameter.annotation
    types = frozenset(get_args(kind) or [kind])
    allowed = text.metavar.partition(", default=")[0]
    words = allowed.split('"')[1::2] + ["none"] * (types >= {str, type(None)})
    metavar = "|".join(["X"] * (float in types) + ["N"] * (int in types) + words) or "TEXT"
    # Names stand in single backticks, code in double ones.
    beginning = ". ".join(text.help.split(". ")[:_SENTENCES]).replace("**", "").replace("``", "")
    parts = beginning.split("`")
    parts[1::2] = [option_name(name) if name in others else name for name in parts[1::2]]
    help = (f"{', '.join(methods)}: " if methods else "") + "".join(parts).rstrip(".") + "."
    panel = "Model" if name in _OF_THE_MODEL else "Privacy"
    shown = documented(SHARED).texts.get(name, Text(panel, metavar, help=help))
    numeric, takes, more = types & {int, float}, str, {}
    if numeric and str in types:
        # Of other words, and of numbers of the wrong kind, the estimator says what would be right.
        more["parser"] = number_or_word
    elif numeric:
        (takes,) = numeric
    option = typer.Option(
        option_name(name),
        help=shown.help,
        metavar=shown.metavar,
        rich_help_panel=shown.panel,
        show_default=False if parameter.default is None else str(parameter.default),
        **more,  # type: ignore[arg-type]
    )
    return shown, _keyword(name, default=None, annotation=Annotated[takes | None, option])


def estimator_options(but: Collection[str]) -> list[Parameter]:
    """Return an option for each parameter of the estimators, but for those with one already."""
    known = estimator_parameters()
    return [known[name][1] for name in known if name not in (*but, *_NOT_GENERATED)]


def number_or_word(text: str) -> int | float | str:
    """Read a value that may be a number."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip().lower()
