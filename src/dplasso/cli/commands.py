"""How commands are put together, and how an error ends one."""

import shlex
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from dplasso.cli.output import in_options, one_line, print_error, print_note
from dplasso.errors import ClusterError, MissingExtraError

INTERRUPTED = 130


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    text = " ".join(str(message).split())
    print_note(f"warning: {in_options(text)}", style="yellow")


def _plain(option: Any) -> Any:
    """Leave the type out of --help's own line, as other flags do."""
    if option is not None:
        option.metavar = ""
    return option


class Command(TyperCommand):
    """A command whose ``--help`` is listed without a type."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option."""
        return _plain(super().get_help_option(ctx))


class Group(TyperGroup):
    """A group whose ``--help`` is listed without a type."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option."""
        return _plain(super().get_help_option(ctx))


_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


def command_line(*more: str) -> str:
    """Return the command line that runs, as it could be typed, with options that it lacks."""
    given = _ARGUMENTS.get()
    return shlex.join(["dplasso", *given, *(one for one in more if one not in given)])


class GuardedGroup(Group):
    """A group of commands in which every expected failure ends in one sentence and an exit code.

    Notes that an error carries are printed below it.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments as they were given."""
        _ARGUMENTS.set(tuple(args))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn errors a user can meet into one sentence and exit code 1."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt as error:
                _print_notes(error)
                print_note("interrupted, no result was written", style="yellow")
                raise typer.Exit(INTERRUPTED) from None
            except BrokenPipeError:
                raise  # the reader of our output left: not an error worth a sentence
            # DataError and ModelFileError are ValueErrors.
            except (ValueError, OSError, ClusterError, MissingExtraError) as error:
                print_error(one_line(error))
                _print_notes(error)
                raise typer.Exit(1) from None
            except MemoryError as error:
                print_error(f"not enough memory: {one_line(error)}")
                _print_notes(error)
                raise typer.Exit(1) from None


def _print_notes(error: BaseException) -> None:
    for note in getattr(error, "__notes__", ()):
        print_note(note, style="yellow")


def command_group(name: str, help: str, epilog: str | None = None) -> typer.Typer:
    """Return an empty group of commands."""
    return typer.Typer(
        name=name,
        cls=Group,
        help=help,
        epilog=epilog,
        no_args_is_help=True,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def add_command(app: typer.Typer, name: str, command: Callable[..., None], epilog: str) -> None:
    """Add a command whose parameters may be groups of options."""
    app.command(name, cls=Command, epilog=epilog)(ungrouped(command))


def ungrouped(command: Callable[..., None]) -> Callable[..., None]:
    """Turn each parameter of a command that is a dataclass of options into these options.

    Typer then sees one parameter for each option, in the order in which they stand.
    """
    groups: dict[str, Any] = {}
    parameters: list[Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in signature(command).parameters.items():
        kind = hints[name]
        if not is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY))
            continue
        groups[name] = kind
        annotations = get_type_hints(kind, include_extras=True)
        parameters += [
            Parameter(
                field.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if field.default is MISSING else field.default,
                annotation=annotations[field.name],
            )
            for field in fields(kind)
        ]

    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    run.__doc__ = command.__doc__
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run
