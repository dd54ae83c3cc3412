"""Printing and progress for all commands.

Results go to standard output, everything else to standard error; with ``--json`` standard output
holds one JSON object and nothing more.
"""

import json
import math
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
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
from dplasso.runtime.compilation import CompileTime, announce_compilation
from dplasso.runtime.progress import duration

if TYPE_CHECKING:
    from dplasso.model.inference import Inference
    from dplasso.privacy.statement import PrivacyStatement
    from dplasso.privacy.wording import Caution

out = Console()
err = Console(stderr=True)

# The lines below it depend on the data without noise.
NOT_FOR_RELEASE = "For the curator only. Do not release:"

# Shorter work prints no lines where there is no terminal.
LINE_SECONDS = 5.0

_NUMERIC = re.compile(r"[-+±~.,%\d ]*")


def one_line(error: BaseException) -> str:
    """Return an error's message as one line, with the file in front where the system names one."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        # A file's name may hold a line break.
        return " ".join(f"{where}{error.strerror}".split("\n"))
    sentence = error.sentence(option_name) if isinstance(error, Explained) else str(error)
    return " ".join(sentence.split()) or type(error).__name__


def error(sentence: str) -> None:
    """Print one sentence in red on standard error, unwrapped and without reading it as markup."""
    note(f"error: {sentence}", "red")


def warn(sentence: str) -> None:
    """Print an important remark on standard error."""
    note(sentence, "yellow")


def cautions(cautions: "Sequence[Caution]") -> None:
    """Print the cautions about a fit on standard error."""
    for one in cautions:
        style = "red" if one.level == "red" else "yellow"
        note(f"caution ({one.level}): {one.sentence}", style)


def note(sentence: str, style: str = "dim") -> None:
    """Print a remark on standard error, on one line if that is no terminal."""
    wrap = err.is_terminal
    err.print(sentence, style=style, markup=False, highlight=False, soft_wrap=not wrap)


@dataclass(frozen=True)
class Result:
    """The result of a command: one JSON object, and `show` to print it in words."""

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
    with _standard_output():
        out.print(shown, **look)


def text(text: str = "", style: str | None = None, *, wrap: bool = True) -> None:
    """Print a part of the result on standard output, without reading it as markup."""
    _print(text, style=style, markup=False, highlight=False, soft_wrap=not wrap)


def listing(columns: Mapping[str, Callable[[Any], str]], items: Iterable[Any], **look: Any) -> None:
    """Print a table with a row for each item; `columns` maps headings to functions of an item."""
    table([*columns], [[cell(one) for cell in columns.values()] for one in items], **look)


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    strong: Mapping[int, str] | None = None,
) -> None:
    """Print a table; a column whose heading begins with > is right-aligned; numbers stay whole.

    `strong` gives the style of some rows by their number.
    """
    table, rows = Table(title=title, title_justify="left"), list(rows)
    for place, heading in enumerate(headings):
        # On a narrow screen words wrap, numbers do not.
        cells = [row[place] for row in rows]
        kept = cells if all(map(_NUMERIC.fullmatch, cells)) else []
        width = max(map(len, [*kept, *heading.lstrip(">").split()]), default=0)
        justify: Any = "right" if heading.startswith(">") else "left"
        table.add_column(
            heading.lstrip(">"), justify=justify, overflow="fold", min_width=width if kept else None
        )
    for i, row in enumerate(rows):
        table.add_row(*row, style=(strong or {}).get(i))
    _print(table)


def facts(facts: Mapping[str, str], *, right: bool = False) -> None:
    """Print names and values in two columns, without breaking long paths."""
    name_width, fact_width = max(map(len, facts)), max(map(len, facts.values())) if right else 0
    for name, fact in facts.items():
        line = Text.assemble((name.ljust(name_width), "bold"), "  ", fact.rjust(fact_width))
        _print(line, soft_wrap=True)


def inferred(estimates: "Inference | None") -> dict[str, Any]:
    """Return the entry of a JSON object for estimates with intervals; none where there are none."""
    if estimates is None:
        return {}
    return {"inference": estimates.rows(), "reference_categories": list(estimates.references)}


def inference(estimates: "Inference | None") -> None:
    """Print estimates with intervals, if there are any."""
    if estimates is not None:
        text(f"{estimates.summary()}\n", wrap=False)


def weights(heaviest: list[dict[str, Any]], title: str, remark: str = "") -> None:
    """Print the rows of `dplasso.model.weights.Weights.rows`.

    `remark`: a sentence below the table.
    """
    if not heaviest:
        return
    from dplasso.model.weights import BY_NOISE

    first = heaviest[0]
    doubtful = any(one["clear"] is False for one in heaviest)
    columns: dict[str, Callable[[dict[str, Any]], str]] = {}
    if "class" in first:
        columns["class"] = lambda one: str(one["class"])
    heading = "column (from 0)" if first["name"] is None else "column"
    columns[heading] = lambda one: escape(one["name"] or f"{one['column']:,}")
    columns[">weight"] = lambda one: f"{one['weight']:+.3f}"
    if "correction" in first:
        columns[">correction"] = lambda one: f"{one['correction']:+.3f}"
    if first["z"] is not None:
        columns[">standard error"] = lambda one: f"{one['standard_error']:.3f}"
        columns[">z"] = lambda one: f"{one['z']:+.1f}"
    elif first["steps"] is not None:
        columns[">steps"] = lambda one: f"{one['steps']:,}"
    if "odds" in first:
        columns[">odds x"] = lambda one: f"{one['odds']:.3g}"
    if doubtful:
        columns[""] = lambda one: "~" if one["clear"] is False else ""
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
    from dplasso.privacy.parameters import RELATIONS

    paragraphs = statement.text().split("\n\n")
    if explain:
        text(statement.text())
    elif statement.is_private:
        text(paragraphs[0])
        protected = RELATIONS[statement.neighbors].protected(statement.rows_per_person)
        text(f"This protects {protected}. Run with --explain for details.")
    else:
        text("\n".join(paragraphs[:2]))


def write_out(text: str) -> None:
    """Write text on standard output as it is."""
    with _standard_output():
        sys.stdout.write(text)
        sys.stdout.flush()


def json_safe(value: Any) -> Any:
    """Turn a value into what strict JSON can hold: infinities become "inf"/"-inf", NaN null."""
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


@dataclass
class Tenths:
    """Lines about long work without a terminal: each tenth, with the time left."""

    began: float = field(default_factory=lambda: time.monotonic())
    said: float = 0.0
    first: tuple[float, float] | None = None

    def line(self, part: float) -> str | None:
        """Return a line, or None where there is nothing new to say of the part that is done."""
        now = time.monotonic()
        # The work before the first call includes compiling, so the pace is measured from there.
        self.first = self.first or (now, part)
        if now < self.began + LINE_SECONDS or part < self.said + 0.1:
            return None
        since, before = self.first
        whole = (now - since) / (part - before) if part > before else math.inf
        if whole < LINE_SECONDS:
            return None
        self.said = math.floor(10.0 * part + 1e-9) / 10.0
        if part <= before or part >= 1.0:
            return f"{part:.0%}"
        return f"{part:.0%}, about {duration(whole * (1.0 - part))} left"


def can_ask() -> bool:
    """Return whether there is somebody to ask."""
    return sys.stdin.isatty() and err.is_terminal


@dataclass
class Bars:
    """Progress on standard error, and the time that the compiler has taken meanwhile."""

    progress: rich_progress.Progress
    compiled: CompileTime

    @contextmanager
    def task(self, label: str) -> Iterator[Callable[..., None]]:
        """Show one piece of work; yields ``update(done, total, label)`` to move its bar."""
        task, tenths = self.progress.add_task(label, total=None), Tenths()

        def update(done: float, total: float, label: str | None = None) -> None:
            self.progress.update(task, completed=done, total=total, description=label)
            if self.progress.disable and (line := tenths.line(done / max(total, 1))):
                note(f"{self.progress.tasks[task].description}: {line}")

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
    """Open progress bars; without a terminal long work says every tenth in a line."""
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
        note("interrupted too late: the outputs were already being written, and are complete")


def check_outputs(
    outputs: Iterable[Path], inputs: Iterable[Path | None] = (), *, force: bool, again: str = ""
) -> None:
    """Refuse outputs that exist (unless `force`), are inputs, named twice or unwritable."""
    read = {path.resolve() for path in inputs if path is not None}
    seen: set[Path] = set()
    for path in outputs:
        place = path.resolve()
        if place in read:
            raise ValueError(f"{path} is an input of this command and will not be overwritten")
        if place in seen:
            raise ValueError(f"{path} is named for two outputs; give each its own file")
        seen.add(place)
        if path.exists() and not path.is_dir() and not force:
            raise FileExistsError(f"{path} exists already; overwrite it with --force{again}")
        check_writable(path)


def check_directory(directory: Path, names: Iterable[str]) -> None:
    """Refuse a directory, which need not exist yet, in which the files could not be written."""
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(f"{directory} exists and is not a folder; choose another --out")
    place = directory.resolve()
    existing = next(folder for folder in (place, *place.parents) if folder.exists())
    names_here = [directory / name for name in names] if directory.is_dir() else []
    for path in names_here or [existing / directory.name]:
        check_writable(path)


@contextmanager
def _standard_output() -> Iterator[None]:
    """Name standard output in a system error, such as a full disk."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8, complete or not at all; an existing one is replaced."""
    with atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
