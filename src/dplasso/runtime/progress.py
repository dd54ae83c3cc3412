"""Progress of long work: bars, lines, and the chunks between which there is some to report."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[int, int], None]

# Seconds before a fit in Python says a word.
SILENT = 2.0
_CHUNK_SECONDS = 0.1


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


def say_or_log(line: str) -> None:
    """Print a line on standard error if somebody watches it, or else in the log."""
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        say(line)
    else:
        logging.getLogger("dplasso").info(line)


def late_progress(
    label: str, unit: str = "steps; verbose=0 hides this"
) -> Callable[[int, int], None]:
    """Return what says how far some work has come, from two seconds on and no more often."""
    last = [time.perf_counter()]

    def report(done: int, total: int) -> None:
        now = time.perf_counter()
        if now - last[0] >= SILENT:
            last[0] = now
            say_or_log(f"dplasso: {label}, {done:,} of {total:,} {unit}")

    return report


def run_in_chunks(
    steps: Any,
    *,
    one_by_one: bool = False,
    checkpoint: Callable[[int], None] | None = None,
    progress: Progress | None = None,
) -> None:
    """Take all steps, about a tenth of a second at a time, or `one_by_one`.

    After each chunk, `checkpoint` is called with the steps done, then `progress` with these and T.
    """
    done, chunk = steps.done, 1
    while done < steps.n_steps:
        last = done + 1 if one_by_one else min(done + chunk, steps.n_steps)
        began = time.perf_counter()
        steps.advance(done + 1, last)
        is_short = time.perf_counter() - began < _CHUNK_SECONDS
        done, chunk = last, 2 * chunk if is_short else max(1, chunk // 2)
        if checkpoint is not None:
            checkpoint(done)
        if progress is not None:
            progress(done, steps.n_steps)
