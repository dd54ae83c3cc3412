"""Measure everything of the configuration file, side by side, and write the report.

    python -m evidence.benchmarks.run [--quick] [--only NAME] [--data FOLDER] [--results FOLDER]

Each case (a comparison on one data set) runs in a process of its own, so that one that needs too
much memory takes nothing else with it. Results are written after each case; a case measured again
replaces its earlier result, the others stay.
"""

import argparse
import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from evidence.benchmarks.config import CONFIG, ConfigError, Settings, read_config
from evidence.benchmarks.datasets import Context, UnavailableError
from evidence.benchmarks.machine import describe_machine, usable_cores
from evidence.benchmarks.report import COMPARISONS, add_case, write_report

RESULTS = Path(__file__).with_name("results")


def measure_case(
    comparison: str, case: str, settings: Settings, context: Context
) -> dict[str, Any]:
    """Measure one case; what cannot be measured says why under "left_out"."""
    began = time.perf_counter()
    try:
        found: dict[str, Any] = COMPARISONS[comparison].measure(case, settings, context)
    except UnavailableError as error:
        return {"left_out": str(error)}
    except MemoryError:
        return {"left_out": "not enough memory"}
    # Linux counts in KiB.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**found, "case_seconds": time.perf_counter() - began, "peak_memory_bytes": peak}


def in_own_process(
    comparison: str, case: str, settings: Settings, context: Context
) -> dict[str, Any]:
    """Measure one case in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(measure_case, comparison, case, settings, context).result()
        except BrokenProcessPool:
            return {"left_out": "its process was killed, for want of memory most likely"}


def wanted(only: list[str], comparison: str, case: str) -> bool:
    """Say whether ``--only`` lets a case through."""
    return not only or comparison in only or f"{comparison}/{case}" in only


def main(arguments: list[str]) -> int:
    """Run the benchmarks; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evidence.benchmarks.run", description=__doc__)
    parser.add_argument("--config", type=Path, default=CONFIG, help="configuration file (TOML)")
    parser.add_argument("--quick", action="store_true", help="the five-minute version")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="a comparison (table3) or one case of it (table3/kdda); may be given again",
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of real data files")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write to")
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="threads (all cores)")
    parser.add_argument("--one-process", action="store_true", help="do not start processes")
    chosen = parser.parse_args(arguments)
    profile = "quick" if chosen.quick else "full"
    try:
        config = read_config(chosen.config, profile)
    except (ConfigError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    plan = [
        (comparison, case, settings)
        for comparison, settings in config.items()
        for case in COMPARISONS[comparison].cases(settings)
        if wanted(chosen.only, comparison, case)
    ]
    if not plan:
        print(f"--only {' '.join(chosen.only)} fits no case of {chosen.config}", file=sys.stderr)
        return 2
    folder = chosen.results / profile
    context = Context(chosen.data, chosen.jobs)
    machine = describe_machine()
    measure = measure_case if chosen.one_process else in_own_process
    for comparison, case, settings in plan:
        print(f"{comparison}/{case} ...", end=" ", file=sys.stderr, flush=True)
        result = measure(comparison, case, settings, context)
        done = result.get("left_out") or f"{result['case_seconds']:.0f} s"
        print(done, file=sys.stderr, flush=True)
        add_case(folder, profile, comparison, case, machine, result)
        write_report(folder, profile)
    print(folder / "report.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
