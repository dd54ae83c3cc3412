"""Options of the commands, from the signatures and docstrings of commands and estimators.

Importing the commands takes seconds, so signatures are read from the sources (`StandIn`). A
docstring has one section for each panel of ``--help``. It lists the options as numpydoc lists
parameters: a line ``name : METAVAR >= smallest value``, and the help indented below. The section
"Examples" has command lines and, after a blank line, a remark. "Most needed" names the options that
``--help`` shows; ``--help-all`` shows the others too. Options that a command does not describe are
described by `SHARED` or by the estimators' docstrings.
"""

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from inspect import Parameter, Signature, cleandoc, signature
from pkgutil import get_data
from typing import Annotated, Any, NamedTuple, get_args

import typer

# --- signatures read from sources ----------------------------------------------------------------


class StandIn(type):
    """A function or class that was read, not imported: its docstring, signature and constants."""

    names: "Names"
    node: ast.FunctionDef | ast.ClassDef

    @property
    def __signature__(cls) -> Signature:
        """Return the signature of the function, class or dataclass."""
        parts = {part.name: part for part in cls.node.body if isinstance(part, ast.FunctionDef)}
        made = parts.get("__init__", cls.node)
        if isinstance(made, ast.ClassDef):
            return Signature(list(cls._fields().values()))
        positional, keywords = made.args.args, made.args.kwonlyargs
        padding: list[ast.expr | None] = [None] * (len(positional) - len(made.args.defaults))
        defaults = [*padding, *made.args.defaults, *made.args.kw_defaults]
        parameters = [
            cls._parameter(argument.arg, argument.annotation, default)
            for argument, default in zip([*positional, *keywords], defaults, strict=True)
            if argument.arg != "self"
        ]
        # Callers only ask whether something is returned.
        nothing = isinstance(made.returns, ast.Constant) and made.returns.value is None
        return Signature(parameters, return_annotation=None if nothing else Signature.empty)

    def _fields(cls) -> dict[str, Parameter]:
        assert isinstance(cls.node, ast.ClassDef)
        fields: dict[str, Parameter] = {}
        for base in cls.node.bases:
            fields |= cls.names.value(base)._fields()
        for part in cls.node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                name = part.target.id
                fields[name] = cls._parameter(name, part.annotation, part.value)
        return fields

    def _parameter(cls, name: str, annotation: Any, default: ast.expr | None) -> Parameter:
        value = cls.names.value
        return _keyword(name, annotation=value(annotation), default=value(default))

    def load(cls) -> Any:
        """Import what this stands for."""
        return getattr(import_module(cls.__module__), cls.__name__)


_keyword = partial(Parameter, kind=Parameter.KEYWORD_ONLY)


class Names(dict[str, Any]):
    """The values of a module's names, each computed when it is first asked for.

    Functions and classes of this package are stand-ins; modules beside it are imported.
    """

    def __init__(self, module: str) -> None:
        self.module, self._nodes = module, dict[str, Any]()
        for node in ast.parse(_source(module)).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self._nodes[node.name] = node
            elif isinstance(node, ast.ImportFrom):
                imported = {to.asname or to.name: (node.module, to.name) for to in node.names}
                self._nodes |= imported
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                self._nodes |= {to.id: node.value for to in targets if isinstance(to, ast.Name)}

    def __missing__(self, name: str) -> Any:
        node = self._nodes[name]
        if isinstance(node, tuple):
            module, original = node
            ours = module.split(".")[0] == __package__.split(".")[0]
            value = names_of(module)[original] if ours else getattr(import_module(module), original)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            value = StandIn(name, (), self._members(node))
        else:
            value = self.value(node)
        self[name] = value
        return value

    def _members(self, node: ast.FunctionDef | ast.ClassDef) -> dict[str, Any]:
        constants = {
            part.target.id: part.value.value
            for part in (node.body if isinstance(node, ast.ClassDef) else [])
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            if isinstance(part.value, ast.Constant)
        }
        about = {"__doc__": ast.get_docstring(node), "__module__": self.module}
        return constants | about | {"names": self, "node": node}

    def value(self, expression: ast.expr | None) -> Any:
        """Return the value of an expression in the module; `Parameter.empty` for none."""
        if expression is None:
            return Parameter.empty
        return eval(compile(ast.Expression(expression), self.module, "eval"), {}, self)


@cache
def names_of(module: str) -> Names:
    """Return the names of a module of this package."""
    return Names(module)


def _source(module: str) -> bytes:
    package, _, path = module.partition(".")
    path = path.replace(".", "/")
    try:
        source = get_data(package, f"{path}.py")
    except FileNotFoundError:
        source = get_data(package, f"{path}/__init__.py")
    assert source is not None
    return source


Chosen = Mapping[str, Any]
"""Parameters of the estimators that the command line sets, by name."""

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
# Parameters without an option, or with one that is written by hand.
NOT_GENERATED = ("class_weight", "fit_intercept", "public_data", "public_rows", "verbose")
# How much of a parameter's docstring ``--help`` shows.
_SENTENCES = 2

SHARED = """
Arguments
---------
data : DATA...
    svmlight text (plain, .gz, .bz2, .xz), a scipy sparse .npz, or a table with a schema (CSV,
    JSON lines, Parquet, Arrow). Several files, or a quoted pattern such as 'part-*.svm.gz', are one
    data set. Or one store made by convert, which is read from the disk as it is needed; fit
    --cluster takes many stores, also on object storage.
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
    logistic (default), or linear for a regression: a weight for every column, each with a standard
    error, by noisy gradient descent; the most accurate on most data. lasso: few weights.
    frank-wolfe: the steps of the paper on an L1 ball.
n_iter : T
    frank-wolfe: steps, and the most weights that the model can have.
prior : FILE
    Start from a public model: one written by fit, or a .csv with the columns name and weight (and
    class, if there are several; a row named (intercept) is optional). This fit does not protect
    the people behind it.

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
    Charge the cost to this ledger before the work begins (see dplasso ledger).
neighbors : add-remove|replace-one|label
    What the guarantee hides: one record added or removed, one record replaced by another, or one
    label replaced (all features are public then).
person_column : NAME
    Tables: the column that says which person a row belongs to. At most --rows-per-person rows of
    each person enter a fit.
purpose : TEXT
    Why this is released. Only the ledger keeps it.
random_state : N >= 0
    Make the run repeatable, for experiments. A seeded run is not private.
rows_per_person : M >= 1
    Largest number of rows of one person. The guarantee then covers a person.
target_bounds : LOW,HIGH
    For a regression: the public interval of the targets. Targets outside it are clipped.

Output
------
force
    Overwrite existing outputs.
"""


@dataclass(frozen=True)
class Text:
    """The help of an option: panel, placeholder, smallest value, text and other names."""

    panel: str
    metavar: str
    least: int | None = None
    help: str = ""
    aliases: tuple[str, ...] = ()


class Documented(NamedTuple):
    """The parts of a docstring."""

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
    """Lay out command lines and a paragraph after them for Typer."""
    commands, _, note = "\n".join(lines).strip().replace("\n    ", " ").partition("\n\n")
    notes = ["\n" + " ".join(note.split())] if note else []
    if not commands:
        return ""
    shown = (f"[cyan]$ {command}[/cyan]" for command in commands.splitlines())
    return "\n\n".join(["[bold]Examples[/bold]", *shown, *notes])


def option_name(parameter: str, value: str | None = None) -> str:
    """Return the name of a parameter's option, with a value if there is one."""
    called = SPELT.get(parameter, "--" + parameter.replace("_", "-"))
    return called if value is None or value == "True" else f"{called} {value.strip(chr(39))}"


def declared(
    name: str, kind: Any, default: Any, texts: Mapping[str, Text], **settings: Any
) -> Parameter:
    """Return one option or argument as Typer takes it; `settings` of the option come last."""
    text = texts[name] if name in texts else estimator_parameters()[name][0]
    info: Any
    if text.panel == "Arguments":
        info = typer.Argument(metavar=text.metavar, help=text.help, show_default=False)
    else:
        plain = float in (kind, *get_args(kind)) and text.least is None
        usual = {"min": text.least, "parser": number if plain else None}
        info = typer.Option(
            *map(option_name, (*text.aliases, name)),
            help=text.help,
            metavar=text.metavar or None,
            rich_help_panel=None if text.panel == "Options" else text.panel,
            **usual | settings,
        )
    return _keyword(name, default=default, annotation=Annotated[kind, info])


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
    """Return text and option of a parameter, which only these `methods` have, or all if empty."""
    name, kind = parameter.name, parameter.annotation
    types = frozenset(get_args(kind) or [kind])
    allowed = text.metavar.partition(", default=")[0]
    words = allowed.split('"')[1::2] + ["none"] * (types >= {str, type(None)})
    metavar = "|".join(["X"] * (float in types) + ["N"] * (int in types) + words) or "TEXT"
    # Docstrings put names in single backticks and code in double ones.
    beginning = ". ".join(text.help.split(". ")[:_SENTENCES]).replace("**", "").replace("``", "")
    parts = beginning.split("`")
    parts[1::2] = [option_name(name) if name in others else name for name in parts[1::2]]
    help = (f"{', '.join(methods)}: " if methods else "") + "".join(parts).rstrip(".") + "."
    panel = "Model" if name in _OF_THE_MODEL else "Privacy"
    shown = documented(SHARED).texts.get(name, Text(panel, metavar, help=help))
    numeric, takes = types & {int, float}, str
    parser: Any = number if numeric == {float} else None
    if numeric and str in types:
        # The estimator refuses other words and numbers of the wrong kind.
        parser = number_or_word
    elif numeric:
        (takes,) = numeric
    default = False if parameter.default is None else str(parameter.default)
    settings = {"min": None, "parser": parser, "show_default": default}
    return shown, declared(name, takes | None, None, {name: shown}, **settings)


def number(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        words = f"{text!r} is not a number; write it with a decimal point, for example 0.5"
        raise typer.BadParameter(words) from None


def number_or_word(text: str) -> int | float | str:
    """Read a value that may be a number."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip().lower()
