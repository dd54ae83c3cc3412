"""The Typer application: its commands, their options, and how errors end them."""

import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from copy import copy
from functools import cached_property, partial
from inspect import Parameter, Signature, signature
from operator import itemgetter
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from dplasso.cli import output
from dplasso.cli.options import (
    NOT_GENERATED,
    SHARED,
    Chosen,
    StandIn,
    Text,
    declared,
    documented,
    estimator_parameters,
    names_of,
)
from dplasso.data.source_files import check_argument
from dplasso.errors import ClusterError, DataError, MissingExtraError, ParameterTypeError
from dplasso.files.disk import program

INTERRUPTED = 130
# Errors that end a command in one sentence; most of this package's are ValueErrors.
EXPECTED = (
    *(ValueError, ParameterTypeError, OSError, ClusterError, MissingExtraError, MemoryError),
)
SETTINGS = {"help_option_names": ["-h", "--help"]}
# Shows all options of a command whose ``--help`` shows the most needed ones.
_EVERYTHING = "--help-all"
_FIRST_EXAMPLES = 4
_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


def with_options(command: StandIn) -> Callable[..., None]:
    """Return a command as Typer takes it: one parameter, with its text, for each option.

    A parameter that is a dataclass stands for the options that are its fields. A command that
    returns something has ``--json``, and what it returns is printed in either way
    (`dplasso.cli.output.Result`).
    """
    texts = documented(SHARED).texts
    options, arguments = _expanded(command, texts)
    if signature(command).return_annotation is not None:
        options.append(declared("as_json", bool, False, texts))

    def run(**values: Any) -> None:
        result = command.load()(**arguments(values))
        if result is not None:
            result.print(as_json=values["as_json"])

    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    return run


# Makes an argument of a command from the values of its options.
_Maker = Callable[[Mapping[str, Any]], Any]


def _expanded(owner: StandIn, texts: dict[str, Text]) -> tuple[list[Parameter], _Maker]:
    """Return the options of a command or a dataclass, and what makes its arguments from them."""
    texts, parameters = texts | documented(owner.__doc__).texts, signature(owner).parameters
    options: list[Parameter] = []
    makers: dict[str, _Maker] = {}
    for name, parameter in parameters.items():
        kind = parameter.annotation
        if isinstance(kind, StandIn):
            own, arguments = _expanded(kind, texts)
            makers[name] = partial(
                lambda kind, arguments, values: kind.load()(**arguments(values)), kind, arguments
            )
        elif kind == Chosen:
            every, left = estimator_parameters().items(), {*parameters, *NOT_GENERATED}
            own = [option for name, (_, option) in every if name not in left]
            makers[name] = partial(_chosen, [option.name for option in own])
        else:
            own, makers[name] = [declared(name, kind, parameter.default, texts)], itemgetter(name)
        options += own
    return options, lambda values: {name: make(values) for name, make in makers.items()}


def _chosen(names: list[str], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in names if values[name] is not None}


class _Help:
    """A command or group whose flags are listed without a type."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, ``--help`` among them."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help on standard output."""
        with output.standard_output():
            super().format_help(ctx, formatter)  # type: ignore[misc]


class Command(_Help, TyperCommand):
    """A command whose module is imported when its options are first asked for."""

    home: StandIn
    # Parameters that ``--help`` shows; empty for all.
    most_needed: tuple[str, ...] = ()

    @cached_property
    def _whole(self) -> Any:
        alone = typer.Typer(add_completion=False, context_settings=SETTINGS)
        alone.command()(with_options(self.home))
        return typer.main.get_command(alone)

    params = property(lambda self: self._whole.params, lambda *_: None)
    callback = property(lambda self: self._whole.callback, lambda *_: None)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help: only the most needed options, unless ``--help-all`` asks for all."""
        if not self.most_needed or _EVERYTHING in _ARGUMENTS.get():
            return super().format_help(ctx, formatter)
        short: Any = copy(self)
        short.get_params = lambda _: list(self._first())
        heading, *examples = (self.epilog or "").split("\n\n")
        more = f"[bold]All options and examples:[/bold] {ctx.command_path} {_EVERYTHING}"
        short.epilog = "\n\n".join([heading, *examples[:_FIRST_EXAMPLES], "\n" + more])
        return _Help.format_help(short, ctx, formatter)

    def _first(self) -> Iterator[Any]:
        by_name: dict[str, Any] = {parameter.name: copy(parameter) for parameter in self.params}
        is_argument = {name: by_name[name].param_type_name == "argument" for name in by_name}
        for name in (*filter(is_argument.get, by_name), *self.most_needed):
            shown = by_name[name]
            shown.help = shown.help.partition(". ")[0].rstrip(".") + "."
            if not is_argument[name]:
                shown.rich_help_panel = "Most needed"
            yield shown


class Group(_Help, TyperGroup):
    """A group of commands."""


class GuardedGroup(Group):
    """All commands; every expected failure ends in one sentence and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments; refuse secrets in them before anything can print them.

        The help and the version are printed here.
        """
        _ARGUMENTS.set(tuple(args))
        try:
            for argument in args:
                check_argument(argument)
            return super().parse_args(ctx, args)
        except BrokenPipeError:
            raise  # the reader of our output left, which is no error
        except (DataError, OSError) as error:
            output.error(output.one_line(error))
            raise typer.Exit(1) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an expected error becomes one sentence and exit code 1."""
        with warnings.catch_warnings():
            # Only threads are used here, and those need no semaphores.
            warnings.filterwarnings("ignore", ".*joblib will operate in serial mode")
            warnings.showwarning = lambda message, *_, **__: output.warn(
                f"warning: {' '.join(str(message).split())}"
            )
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt as error:
                _print_notes(error)
                output.warn("interrupted, no result was written")
                raise typer.Exit(INTERRUPTED) from None
            except BrokenPipeError:
                raise  # the reader of our output left, which is no error
            except EXPECTED as error:
                memory = "not enough memory: " if isinstance(error, MemoryError) else ""
                output.error(memory + output.one_line(error))
                _print_notes(error)
                raise typer.Exit(1) from None


def _print_notes(error: BaseException) -> None:
    for note in getattr(error, "__notes__", ()):
        output.warn(note)


def command_line(*more: str) -> str:
    """Return the current command line as it could be typed, with more options."""
    arguments = _ARGUMENTS.get()
    added = [option for option in more if option not in arguments]
    return shlex.join(["dplasso", *arguments, *added])


def add_group(app: typer.Typer, name: str, docstring: str, *homes: str) -> None:
    """Add a group of commands, each ``module.function`` of this package."""
    about = documented(docstring)
    group = typer.Typer(
        name=name,
        cls=Group,
        help=about.summary,
        epilog=about.epilog,
        no_args_is_help=True,
        rich_markup_mode="rich",
        context_settings=SETTINGS,
    )
    app.add_typer(group)
    for home in homes:
        add_command(group, home)


def add_command(app: typer.Typer, home: str) -> None:
    """Add a command, ``module.function`` of this package, without importing the module."""
    place, _, function = f"dplasso.cli.{home}".rpartition(".")
    command = names_of(place)[function]
    about = documented(command.__doc__)
    names = SETTINGS["help_option_names"] + [_EVERYTHING] * bool(about.most_needed)
    members = {"home": command, "most_needed": about.most_needed}
    kind = type("Command", (Command,), members)
    app.command(
        function,
        cls=kind,
        help=about.summary,
        epilog=about.epilog,
        context_settings={"help_option_names": names},
    )(lambda: None)


# --- the commands --------------------------------------------------------------------------------

app = typer.Typer(
    name="dplasso",
    cls=GuardedGroup,
    help=(
        "Differentially private linear models for sparse, high-dimensional data."
        "\n\nModels are trained under (epsilon, delta)-differential privacy: logistic or "
        "linear regression by noisy gradient descent, or a sparse LASSO."
    ),
    epilog=(
        "Start here:  dplasso demo   "
        "Then:  dplasso fit train.svm.gz --epsilon 1 --test test.svm.gz --model model.npz"
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        output.text(program())
        raise typer.Exit


_VERSION = typer.Option(
    "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
)


@app.callback()
def _options(_version: Annotated[bool, _VERSION] = False) -> None:
    """Take the options before the command's name."""


for home in (
    *("fit.fit", "models.predict", "models.evaluate", "models.explain"),
    *("showing.show", "showing.report", "planning.plan", "planning.budget"),
    *("audit.audit", "demo.demo", "stores.convert"),
):
    add_command(app, home)
add_group(app, "data", "Show what a store contains.", "stores.info")
add_group(app, "schema", "Describe the columns of a table.", "schemas.draft")
LEDGER = """Keep one privacy budget for all fits on a data set.

Examples
--------
dplasso ledger init team.ledger --epsilon 3 --delta 1e-5 --dataset visits
dplasso ledger plan team.ledger --fits 5
dplasso fit train.svm.gz --epsilon 1 --ledger team.ledger --dataset visits --model model.npz
dplasso ledger show team.ledger
"""
ON_LEDGERS = ("init", "add", "name", "spend", "show", "plan")
add_group(app, "ledger", LEDGER, *(f"ledgers.{name}" for name in ON_LEDGERS))
