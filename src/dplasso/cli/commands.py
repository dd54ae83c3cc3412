"""How commands are put together, and how an error ends one."""

import shlex
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from dplasso.cli import output
from dplasso.cli.options import documented, in_options, with_options
from dplasso.errors import ClusterError, MissingExtraError

INTERRUPTED = 130
SETTINGS = {"help_option_names": ["-h", "--help"]}
_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


class _Help:
    """A command or group whose ``--help`` is listed without a type, as other flags are."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class Command(_Help, TyperCommand):
    """A command whose options are put together when they are first asked for.

    The texts of some stand in the estimators' docstrings, whose modules take seconds to import.
    """

    function: Callable[..., None]
    _whole: Any = None

    @property
    def params(self) -> list[Any]:
        """The arguments and options."""
        if self._whole is None:
            alone = typer.Typer(add_completion=False, context_settings=SETTINGS)
            alone.command()(with_options(self.function))
            self._whole = typer.main.get_command(alone)
            self.callback = self._whole.callback
        params: list[Any] = self._whole.params
        return params

    @params.setter
    def params(self, _: Any) -> None:
        pass


class Group(_Help, TyperGroup):
    """A group of commands."""


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
                output.note("interrupted, no result was written", style="yellow")
                raise typer.Exit(INTERRUPTED) from None
            except BrokenPipeError:
                raise  # the reader of our output left: not an error worth a sentence
            # DataError and ModelFileError are ValueErrors.
            except (ValueError, OSError, ClusterError, MissingExtraError, MemoryError) as error:
                memory = "not enough memory: " if isinstance(error, MemoryError) else ""
                output.error(memory + output.one_line(error))
                _print_notes(error)
                raise typer.Exit(1) from None


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    output.note(f"warning: {in_options(' '.join(str(message).split()))}", style="yellow")


def _print_notes(error: BaseException) -> None:
    for note in getattr(error, "__notes__", ()):
        output.note(note, style="yellow")


def command_line(*more: str) -> str:
    """Return the command line that runs, as it could be typed, with options that it lacks."""
    given = _ARGUMENTS.get()
    return shlex.join(["dplasso", *given, *(one for one in more if one not in given)])


def command_group(name: str, docstring: str) -> typer.Typer:
    """Return an empty group of commands."""
    told = documented(docstring)
    return typer.Typer(
        name=name,
        cls=Group,
        help=told.summary,
        epilog=told.epilog,
        no_args_is_help=True,
        rich_markup_mode="rich",
        context_settings=SETTINGS,
    )


def add_command(app: typer.Typer, name: str, command: Callable[..., None]) -> None:
    """Add a command; `with_options` says how its signature and docstring become options."""

    def without_options() -> None:
        pass

    kind = type("Command", (Command,), {"function": staticmethod(command)})
    told = documented(command.__doc__)
    add = app.command(
        name, cls=kind, help=told.summary, epilog=told.epilog, context_settings=SETTINGS
    )
    add(without_options)
