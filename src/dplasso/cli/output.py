"""What all commands share: where text goes, how an error ends, progress, files put in place whole.

Results go to standard output, everything else to standard error; with ``--json`` standard output
holds one JSON object and nothing more.
"""

import json
import math
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from typer.core import TyperGroup

out = Console()
err = Console(stderr=True)

INTERRUPTED = 130


def one_line(error: BaseException) -> str:
    """Give an error's message as one line, with the file in front where the system names one.

    Parameters
    ----------
    error : BaseException
        What was raised.

    Returns
    -------
    str
        The message without line breaks; never empty.
    """
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        # A file's name may hold a line break.
        return " ".join(f"{where}{error.strerror}".split("\n"))
    return " ".join(str(error).split()) or type(error).__name__


def print_error(sentence: str) -> None:
    """Print one sentence in red on standard error, unwrapped and without reading it as markup."""
    err.print(f"error: {sentence}", style="red", markup=False, highlight=False, soft_wrap=True)


def print_note(sentence: str, style: str = "dim") -> None:
    """Print a remark that is no result on standard error."""
    err.print(sentence, style=style, markup=False, highlight=False, soft_wrap=True)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    text = " ".join(str(message).split())
    print_note(f"warning: {text}", style="yellow")


class GuardedGroup(TyperGroup):
    """A group of commands in which every expected failure ends in one sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn errors a user can meet into one sentence and exit code 1."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                print_note("interrupted, no result was written", style="yellow")
                raise typer.Exit(INTERRUPTED) from None
            except BrokenPipeError:
                raise  # the reader of our output left: not an error worth a sentence
            except (ValueError, OSError) as error:  # DataError and ModelFileError are ValueErrors
                print_error(one_line(error))
                raise typer.Exit(1) from None
            except MemoryError as error:
                print_error(f"not enough memory: {one_line(error)}")
                raise typer.Exit(1) from None


def json_safe(value: Any) -> Any:
    """Turn a value into what strict JSON can hold: infinities become "inf"/"-inf", NaN null.

    Parameters
    ----------
    value : Any
        Nested mappings, sequences, paths, numpy or Python scalars.

    Returns
    -------
    Any
        The same with plain dict, list, str, int, float, bool and None only.
    """
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON object on one line of standard output."""
    sys.stdout.write(json.dumps(json_safe(document), allow_nan=False) + "\n")


class Bars:
    """Progress on standard error, drawn only when that is a terminal.

    Parameters
    ----------
    progress : rich.progress.Progress
        The display the bars belong to.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    @contextmanager
    def task(self, label: str) -> Iterator[Callable[[int, int], None]]:
        """Show one piece of work; yields ``update(done, total)`` to move its bar."""
        task = self._progress.add_task(label, total=None)

        def update(done: int, total: int) -> None:
            self._progress.update(task, completed=done, total=total)

        try:
            yield update
        except BaseException:
            self._progress.stop_task(task)  # the bar stays where the work stopped
            raise
        self._progress.update(task, completed=1, total=1)

    def note(self, sentence: str) -> None:
        """Print a remark above the bars."""
        self._progress.console.print(sentence, style="dim", markup=False, highlight=False)


@contextmanager
def progress_bars() -> Iterator[Bars]:
    """Open a set of progress bars; silent where standard error is not a terminal.

    A wait for the compiler is announced wherever standard error goes.
    """
    progress = Progress(
        SpinnerColumn(finished_text="[green]✓[/green]"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=err,
        disable=not err.is_terminal,
    )
    from dplasso.runtime.compilation import announce_compilation

    with progress:
        bars = Bars(progress)
        with announce_compilation(bars.note):
            yield bars


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C while the outputs are put in place, so that all of them appear or none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda *_: held.append(1))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if held:
        print_note("interrupted too late: the outputs were already being written, and are complete")
