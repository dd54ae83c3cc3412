"""Measure pieces of evidence, keep the results and write the reports.

    python -m evidence paper/table4 --data news20_rebuilt.svm.gz --out paper
    python -m evidence paper --data rcv1 --data url@0.02 --twin --out report
    python -m evidence benchmarks --quick                 # make bench
    python -m evidence utility/lasso --data adult --again # one method, measured anew
    python -m evidence benchmarks/table3/kdda --again     # one case of one comparison
    python -m evidence assurance                          # make assurance, where it was stopped
    python -m evidence assurance/fuzz --inputs 1000       # with options of its own: only shown

A name is a list, LIST/ITEM or LIST/ITEM/CELL. A cell that is finished is not measured again, but
with --again. Published results are in evidence/results, one folder for each list; those of the
small version go to build/evidence. The exit code is 1 if a part failed.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from evidence.cells import Cell, Report, failed
from evidence.datasets import find_sources
from evidence.items import ROOT, Item, Settings
from evidence.machine import usable_cores
from evidence.options import parse_options
from evidence.runner import ALL, LISTS, item_names, open_list, publish, published, run_items

# Seconds between two lines about one cell.
_LINE_EVERY = 10.0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evidence", description=__doc__, add_help=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("names", nargs="*", metavar="LIST/ITEM", help=f"lists: {', '.join(LISTS)}")
    add("--help", "-h", action="store_true", help="show this, or an item's own options")
    add("--list", action="store_true", help="run nothing, say what there is")
    add("--quick", action="store_true", help="the small version")
    add("--again", action="store_true", help="measure finished cells too")
    add("--page", action="store_true", help="run nothing, write the reports anew")
    add("--out", type=Path, metavar="DIR", help="results and reports go here")
    add("--at-once", type=_count, default=1, metavar="N", help="cells at a time (1)")
    add("--json", action="store_true", help="print the results as one JSON object")
    add("--data", action="append", metavar="PATH", help="data set; benchmarks: folder of files")
    add("--twin", action="store_true", help="generate data sets of the shape of the named ones")
    add("--scale", type=float, default=1.0, help="factor on rows and columns of generated ones")
    add("--iterations", type=_count, metavar="T", help="instead of the paper's")
    add("--seed", type=int, default=0)
    add("--repeats", type=_count, default=3, metavar="R", help="runs of which a time is the median")
    add("--limit", type=float, default=4.0, metavar="SECONDS", help="of a timed run")
    add("--jobs", type=_count, default=usable_cores(), metavar="N", help="threads (all cores)")
    add("--config", type=Path, metavar="TOML", help="instead of benchmarks/config.toml")
    return parser


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {count}")
    return count


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit code."""
    parser = _parser()
    given, own = parser.parse_known_args(arguments)
    if not given.names and (given.help or not given.list):
        parser.print_help()
        return 0 if given.help else 2
    if given.list:
        for name in given.names or LISTS:
            print("\n".join(f"{name}/{item}" for item in open_list(name).ITEMS))
        return 0
    try:
        return max([_run(name, given, own) for name in given.names])
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2


def _run(name: str, given: argparse.Namespace, own: list[str]) -> int:
    """Run one list, item or cell of it."""
    list_name, item, only = [*name.split("/"), "", ""][:3]
    module = open_list(list_name)
    names = item_names(module, item or ALL)
    settings = Settings((), given.iterations, given.seed, given.jobs, given.repeats, given.limit)
    settings = replace(settings, quick=given.quick, config=given.config)
    options = module.ITEMS[names[0]].options if item else getattr(module, "options", None)
    if options is not None and (own or given.help):
        own += ["--help"] if given.help else []
        more = parse_options(options, f"python -m evidence {name}", own)
        settings = replace(settings, options=more)
    elif own or given.help:
        _parser().print_help()
        return 0 if given.help else 2
    if not hasattr(module, "UNSOURCED"):
        settings = replace(settings, data=Path(given.data[0]) if given.data else None)
    elif given.data or given.twin or set(names) - module.UNSOURCED:
        shape = {"twin": given.twin, "scale": given.scale, "seed": given.seed}
        asked = given.data or getattr(module, "DATA", [])
        found = find_sources(asked, **shape, n_jobs=given.jobs)
        settings = replace(settings, sources=tuple(found))
    shown_only = settings.options and given.out is None
    folder = given.out or (ROOT / "build/evidence" / list_name if given.quick else None)
    folder = folder or published(list_name)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if shown_only else folder
        if given.page:
            items = [module.ITEMS[one].presented(settings, folder) for one in names]
            items, results = [one for one in items if one], []
        else:
            ways: dict[str, Any] = {"only": only, "jobs": given.at_once, "again": given.again}
            ways |= {"ended": _tell} if list_name != "paper" else {"report": _progress()}
            items, results = run_items(module, names, settings, folder, **ways)
        files = {} if shown_only else publish(module, items, settings, folder)
    if given.json:
        print(json.dumps({"passed": not any(map(_bad, results)), "cells": results}, indent=1))
    else:
        _show(items)
        for kinds in files.values():
            print("written:", ", ".join(path.name for path in kinds.values()), file=sys.stderr)
    return int(any(map(_bad, results)))


def _bad(result: dict[str, Any]) -> bool:
    return failed(result) and "left_out" not in result


def _tell(cell: Cell, result: dict[str, Any]) -> None:
    verdict = result.get("left_out") or result.get("failure") or "done"
    verdict = "FAILED" if result.get("passed") is False else verdict
    print(f"{cell.kind} {cell.name}".strip() + f": {verdict}", file=sys.stderr, flush=True)


def time_left(seconds: float, share: float) -> str:
    """Return how long the rest will take at this pace, or nothing if it is too early to say."""
    if not 0.005 <= share < 1.0 or seconds < 1.0:
        return ""
    left = seconds * (1.0 - share) / share
    for size, name in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if left >= 1.5 * size:
            return f"about {left / size:.2g} {name} left"
    return f"about {left:.2g} s left"


def _progress() -> Report:
    """Return what prints the cell that is being measured, anew every ten seconds."""
    began, printed_at, printed = time.perf_counter(), 0.0, ""

    def report(line: str, share: float) -> None:
        nonlocal printed_at, printed
        seconds = time.perf_counter() - began
        if line == printed and seconds - printed_at < _LINE_EVERY:
            return
        printed_at, printed = seconds, line
        left = time_left(seconds, share)
        print(f"{100 * share:3.0f} %  {line}  {left}".rstrip(), file=sys.stderr, flush=True)

    return report


def _show(items: list[Item]) -> None:
    from evidence.report import markdown

    print("\n\n".join(markdown(replace(item, draw=None)) for item in items))


if __name__ == "__main__":
    sys.exit(main())
