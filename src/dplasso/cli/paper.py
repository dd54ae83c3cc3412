"""``dplasso paper``: the tables and figures of the paper, measured again."""

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape

import dplasso
from dplasso.cli import output
from dplasso.runtime.cores import usable_cores
from dplasso.runtime.extras import need
from dplasso.runtime.progress import duration

if TYPE_CHECKING:
    from evidence.items import Item

# Letters that a column of words needs at least.
_READABLE = 11
# Lines on a standard error that is no terminal come at most this often, in seconds.
_LINE_EVERY = 10.0


def paper(
    item: str,
    data: list[str] | None = None,
    twin: bool = False,
    scale: float = 1.0,
    out: Path = Path("paper"),
    iterations: int | None = None,
    seed: int = 0,
    repeats: int = 3,
    limit: float = 4.0,
    jobs: int | None = None,
) -> output.Result:
    """Reproduce the paper's tables and figures, with what is wrong in them.

    Arguments
    ---------
    item : ITEM
        table1, table2, figure1, figure2, figure3, figure4, table3, table4, or all.

    Data
    ----
    data : NAME|PATH
        rcv1, news20, url, web or kdda, NAME@SCALE for a twin of that scale, or a file or store; may
        be given again. Default: the five, or those present.
    twin
        Generate data sets of the shape of the named ones.
    scale : F
        Factor on rows and columns of twins.

    Output
    ------
    out : DIR
        Where CSV, PNG, SVG and Markdown go, and the finished cells.

    Runs
    ----
    iterations : T >= 1
        Instead of the paper's: 1,000 (figures), 4,000 (table3), 400,000 (table4).
    seed : S >= 0
        Of twins, of draws and of the held-out rows.
    repeats : R >= 1
        Runs of which a time is the median (table1, table3).
    limit : SECONDS >= 0
        A timed run is stopped after this time and scaled to all its steps.

    Examples
    --------
    dplasso paper table4 --data news20_rebuilt.svm.gz
    dplasso paper figure1 --data rcv1 --data url@0.02 --twin
    dplasso paper table3 --data web@0.1 --data kdda@0.2 --limit 4
    dplasso paper all --data rcv1 --twin --out report

    A cell that is finished is not measured again: the same command continues where it stopped. The
    numbers depend on the data, and the paper's mechanism is not private: for public data sets only.
    """
    need("matplotlib", "dplasso paper")
    if importlib.util.find_spec("evidence") is None:
        # In an installed package it lies in a folder of it.
        sys.path.append(str(Path(dplasso.__file__).parent / "bundled"))
    from evidence.datasets import find_sources
    from evidence.items import Settings

    from evidence import runner

    module = runner.open_list("paper")
    names = runner.item_names(module, item)
    threads = jobs or usable_cores()
    needed = bool(data) or twin or set(names) - module.UNSOURCED
    shape: dict[str, Any] = {"twin": twin, "scale": scale, "seed": seed}
    found = find_sources(data or [], **shape, n_jobs=threads) if needed else []
    settings = Settings(tuple(found), iterations, seed, threads, repeats, limit)
    kinds = ("csv", "png", "md")
    output.check_directory(out, [f"{name}.{kind}" for name in names for kind in kinds])
    started = time.perf_counter()
    with _progress() as report:
        items, _ = runner.run_items(module, names, settings, out, report)
    files = runner.publish(module, items, settings, out)
    seconds = time.perf_counter() - started
    document = {}
    for one in items:
        rows = [dict(zip(one.data_head, row, strict=True)) for row in one.data_rows]
        document[one.name] = {"title": one.title, "rows": rows}

    def show() -> None:
        for one in items:
            _print(one)
        output.text(f"Done in {seconds:.0f} s. Written to {out}")

    return output.Result({"items": document, "files": files, "seconds": seconds}, show)


def _print(item: "Item") -> None:
    output.text(f"\n{item.title}", "bold")
    for part in item.parts:
        if isinstance(part, str):
            output.text(part)
            continue
        columns = zip(part.head, *part.rows, strict=True)
        if sum(min(max(map(len, cells)), _READABLE) + 3 for cells in columns) > output.out.width:
            for row in part.rows:
                output.text()
                cells = zip(part.head, row, strict=True)
                output.facts({name: cell for name, cell in cells if cell})
            continue
        rows = ([escape(cell) for cell in row] for row in part.rows)
        output.table(part.head, rows, box=SIMPLE_HEAD, pad_edge=False)


def time_left(seconds: float, share: float) -> str:
    """Return how long the rest will take at this pace, or nothing if it is too early to say."""
    if share < 0.005 or seconds < 1.0:
        return ""
    left = seconds * (1.0 - share) / share
    return f"about {duration(left)} left"


@contextmanager
def _progress() -> Iterator[Callable[[str, float], None]]:
    """Report the cells: a bar on a terminal, now and then a line elsewhere."""
    began, said, last_line = time.perf_counter(), -_LINE_EVERY, ""
    with output.progress_bars() as bars, bars.task("") as update:

        def report(line: str, share: float) -> None:
            nonlocal said, last_line
            seconds = time.perf_counter() - began
            left = time_left(seconds, share)
            told = line + (f"  ({left})" if left else "")
            update(share, 1.0, told)
            if output.err.is_terminal or (line == last_line and seconds - said < _LINE_EVERY):
                return
            said, last_line = seconds, line
            output.note(f"{100 * share:3.0f} %  {told}")

        yield report
