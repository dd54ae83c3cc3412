"""Printing and progress for all commands.

Results go to standard output, everything else to standard error; with ``--json`` standard output
holds one JSON object and nothing more.
"""

import json
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import typer
from rich import progress as rich_progress
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from dplasso.cli.options import option_name
from dplasso.errors import Explained
from dplasso.files.disk import atomic_write, check_writable
from dplasso.files.json_values import json_safe
from dplasso.runtime.compilation import CompileTime, announce_compilation

if TYPE_CHECKING:
    from dplasso.model.inference import Inference
    from dplasso.privacy.statement import PrivacyStatement
    from dplasso.privacy.wording import Caution

out = Console()
err = Console(stderr=True)

# The lines below it depend on the data without noise.
NOT_FOR_RELEASE = "For the curator only. Do not release:"

# Where there is no terminal, a line about long work comes no sooner than this after the last one.
LINE_SECONDS = 5.0

_NUMERIC = re.compile(r"[-+±~.,%\d ]*")


def one_line(error: BaseException) -> str:
    """Return an error's message as one line; a system error begins with its file."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        # A file's name may hold a line break.
        return " ".join(f"{where}{error.strerror}".split("\n"))
    sentence = error.sentence(option_name) if isinstance(error, Explained) else str(error)
    return " ".join(sentence.split()) or type(error).__name__


def error(sentence: str) -> None:
    """Print an error on standard error."""
    note(f"error: {sentence}", "red")


def warn(sentence: str) -> None:
    """Print a warning on standard error."""
    note(sentence, "yellow")


def cautions(cautions: "Sequence[Caution]") -> None:
    """Print the cautions about a fit on standard error."""
    for caution in cautions:
        style = "red" if caution.level == "red" else "yellow"
        note(f"caution ({caution.level}): {caution.sentence}", style)


def cautions_json(cautions: "Sequence[Caution]") -> list[dict[str, str]]:
    """Return cautions as JSON values."""
    return [{"level": caution.level, "sentence": caution.sentence} for caution in cautions]


def note(sentence: str, style: str = "dim") -> None:
    """Print a remark on standard error, on one line unless that is a terminal."""
    wrap = err.is_terminal
    err.print(sentence, style=style, markup=False, highlight=False, soft_wrap=not wrap)


@dataclass(frozen=True)
class Result:
    """The result of a command: one JSON object, or `show` to print it in words."""

    document: Mapping[str, Any]
    show: Callable[[], None]
    exit_code: int = 0

    def print(self, *, as_json: bool) -> None:
        """Print it; end the command with its exit code, if it has one."""
        if as_json:
            write_out(json.dumps(json_safe(self.document), allow_nan=False) + "\n")
        else:
            self.show()
        if self.exit_code:
            raise typer.Exit(self.exit_code)


def _print(shown: Any, **look: Any) -> None:
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal may lack letters of names, and a fit has been paid for.
        sys.stdout.reconfigure(errors="backslashreplace")
    with standard_output():
        out.print(shown, **look)


def text(text: str = "", style: str | None = None, *, wrap: bool = True) -> None:
    """Print a part of the result on standard output, without reading it as markup."""
    _print(text, style=style, markup=False, highlight=False, soft_wrap=not wrap)


def listing(columns: Mapping[str, Callable[[Any], str]], items: Iterable[Any], **look: Any) -> None:
    """Print a table with a row for each item; `columns` maps headings to functions of an item."""
    table([*columns], [[cell(item) for cell in columns.values()] for item in items], **look)


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    strong: Mapping[int, str] | None = None,
) -> None:
    """Print a table; a heading that begins with > is right-aligned; `strong` styles rows by number.

    Columns of numbers are not wrapped.
    """
    table, rows = Table(title=title, title_justify="left"), list(rows)
    for place, heading in enumerate(headings):
        name, width = heading.lstrip(">"), None
        cells = [row[place] for row in rows]
        if cells and all(map(_NUMERIC.fullmatch, cells)):
            width = max(map(len, [*cells, *name.split()]))
        justify: Any = "right" if heading.startswith(">") else "left"
        table.add_column(name, justify=justify, overflow="fold", min_width=width)
    for i, row in enumerate(rows):
        table.add_row(*row, style=(strong or {}).get(i))
    _print(table)


def facts(facts: Mapping[str, str], *, right: bool = False, prose: Collection[str] = ()) -> None:
    """Print names and values in two columns. Values named in `prose` are wrapped, paths are not."""
    name_width, fact_width = max(map(len, facts)), max(map(len, facts.values())) if right else 0
    indent = " " * (name_width + 2)
    for name, fact in facts.items():
        if name in prose:
            lines = wrap(fact, max(out.width - len(indent), 40), break_on_hyphens=False)
            fact = f"\n{indent}".join(lines)
        line = Text.assemble((name.ljust(name_width), "bold"), "  ", fact.rjust(fact_width))
        _print(line, soft_wrap=True)


def inferred(estimates: "Inference | None") -> dict[str, Any]:
    """Return the entries of a JSON object for estimates with intervals, if there are any."""
    if estimates is None:
        return {}
    return {"inference": estimates.rows(), "reference_categories": list(estimates.references)}


def inference(estimates: "Inference | None") -> None:
    """Print estimates with intervals, if there are any."""
    if estimates is not None:
        text(f"{estimates.summary()}\n", wrap=False)


def _figure(value: float, sign: str = "") -> str:
    """Return three decimals, or two digits of a number that has none there."""
    return f"{value:{sign}.3f}" if abs(value) >= 0.0005 or not value else f"{value:{sign}.1e}"


def weights(heaviest: list[dict[str, Any]], title: str, remark: str = "") -> None:
    """Print rows of `dplasso.model.weights.Weights.rows`, and a remark below them."""
    if not heaviest:
        return
    from dplasso.model.weights import BY_NOISE

    first = heaviest[0]
    doubtful = any(row["clear"] is False for row in heaviest)
    columns: dict[str, Callable[[dict[str, Any]], str]] = {}
    if "class" in first:
        columns["class"] = lambda row: str(row["class"])
    heading = "column (from 0)" if first["name"] is None else "column"
    columns[heading] = lambda row: escape(row["name"] or f"{row['column']:,}")
    columns[">weight"] = lambda row: _figure(row["weight"], "+")
    if "correction" in first:
        columns[">correction"] = lambda row: _figure(row["correction"], "+")
    if first["z"] is not None:
        columns[">standard error"] = lambda row: _figure(row["standard_error"])
        columns[">z"] = lambda row: f"{row['z']:+.1f}"
    elif first["steps"] is not None:
        columns[">steps"] = lambda row: f"{row['steps']:,}"
    if "odds" in first:
        columns[">odds x"] = lambda row: f"{row['odds']:.3g}"
    if doubtful:
        columns[""] = lambda row: "~" if row["clear"] is False else ""
    listing(columns, heaviest, title=title)
    if remark:
        text(remark, "dim")
    if doubtful:
        text(f"~ {BY_NOISE}", "dim")


def data_text(report: Mapping[str, Any]) -> str:
    """Return the size of a data set in words."""
    return (
        f"{report['n_samples']:,} rows, {report['n_features']:,} columns, {report['nnz']:,} entries"
    )


def promise(statement: "PrivacyStatement", *, explain: bool) -> None:
    """Print the privacy statement, or only its most important sentences."""
    paragraphs = statement.text().split("\n\n")
    if explain:
        text(statement.text())
    elif statement.is_private:
        text(paragraphs[0])
        text(f"This protects {statement.protected}. Run with --explain for details.")
    else:
        text("\n".join(paragraphs[:2]))


def write_out(text: str) -> None:
    """Write text on standard output as it is."""
    with standard_output():
        sys.stdout.write(text)
        sys.stdout.flush()


@dataclass
class Bars:
    """Progress on standard error, and the time that the compiler has taken meanwhile."""

    progress: rich_progress.Progress
    compiled: CompileTime

    @contextmanager
    def task(self, label: str) -> Iterator[Callable[..., None]]:
        """Show one piece of work; yields ``update(done, total, label)`` to move its bar."""
        task, last, said = self.progress.add_task(label, total=None), time.monotonic(), 0

        def update(done: float, total: float, label: str | None = None) -> None:
            nonlocal last, said
            self.progress.update(task, completed=done, total=total, description=label)
            tenths, now = int(10.0 * done / max(total, 1)), time.monotonic()
            if self.progress.disable and tenths > said and now >= last + LINE_SECONDS:
                last, said = now, tenths
                note(f"{self.progress.tasks[task].description}: {tenths / 10:.0%}")

        try:
            yield update
        except BaseException:
            self.progress.stop_task(task)  # the bar stays where the work stopped
            raise
        self.progress.update(task, completed=1, total=1)

    @contextmanager
    def stages(self) -> Iterator[Callable[[str, int, int], None]]:
        """Show stages that follow each other; yields ``update(stage, done, total)``."""
        updates: dict[str, Callable[[int, int], None]] = {}
        with ExitStack() as shown:

            def update(stage: str, done: int, total: int) -> None:
                if stage not in updates:
                    shown.close()
                    updates[stage] = shown.enter_context(self.task(stage))
                updates[stage](done, total)

            yield update


@contextmanager
def progress_bars() -> Iterator[Bars]:
    """Open progress bars; without a terminal, long work prints a line for a tenth now and then."""
    progress = rich_progress.Progress(
        rich_progress.SpinnerColumn(finished_text="[green]✓[/green]"),
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(bar_width=30),
        rich_progress.TaskProgressColumn(),
        rich_progress.TimeElapsedColumn(),
        console=err,
        disable=not err.is_terminal,
    )
    with progress, announce_compilation(note) as compiled:
        yield Bars(progress, compiled)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C while outputs are written, so that all of them appear or none."""
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
        note("interrupted too late: the outputs were already being written, and are complete")


def check_outputs(
    outputs: Iterable[Path], inputs: Iterable[Path | None] = (), *, force: bool, again: str = ""
) -> None:
    """Refuse outputs that exist (unless `force`), cannot be written, or are or lie in inputs."""
    used = {path.resolve() for path in inputs if path is not None}
    for path in outputs:
        place = path.resolve()
        if used.intersection([place, *place.parents]):
            raise ValueError(f"{path} is used by this command already; give another file to write")
        check_writable(path)
        if path.exists() and not force:
            raise FileExistsError(f"{path} exists already; overwrite it with --force{again}")


@contextmanager
def standard_output() -> Iterator[None]:
    """Name standard output in a system error, such as a full disk, and of missing letters."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise ValueError(
            f"standard output: {error.encoding} lacks a letter; set PYTHONIOENCODING=utf-8"
        ) from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8, complete or not at all; an existing one is replaced."""
    with atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
