"""A progress bar on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar while the block runs; what is yielded takes the steps done and the total."""
    from rich import console, progress

    columns = progress.TextColumn(label), progress.BarColumn(), progress.MofNCompleteColumn()
    shown = console.Console(stderr=True)
    with progress.Progress(*columns, progress.TimeRemainingColumn(), console=shown) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def say(line: str) -> None:
    """Print one line on standard error."""
    print(line, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Word a time, roughly."""
    for size, name in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {name}"
    return f"{seconds:.2g} s"
