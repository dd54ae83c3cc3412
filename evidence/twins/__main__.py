"""Generate a data set of the shape of one of the paper's, straight to a store on disk.

    python -m evidence.twins rcv1 rcv1.store
    python -m evidence.twins url url-tenth.store --scale 0.1 --seed 7
    python -m evidence.twins web web.store --memory 4e9

A twin has the rows, columns, entries and popularity of columns of its original, and labels that a
sparse linear model explains; not its contents. The same seed gives the same twin on any machine,
whatever the memory and the threads.
"""

import argparse
import sys
from pathlib import Path

from dplasso.data.store import write_blocks
from dplasso.runtime.threads import usable_cores
from evidence.twins.generate import synthetic_source


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m evidence.twins",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("name", metavar="NAME", help="rcv1, news20, url, web or kdda")
    add("out", metavar="OUT", type=Path, help="the store to make")
    add("--scale", type=float, default=1.0, help="factor on the numbers of rows and columns (1)")
    add("--seed", type=int, default=0, help="of everything that is generated (0)")
    add("--memory", type=float, default=2e9, help="bytes to use in all (2e9)")
    add("--jobs", type=int, default=usable_cores(), help="threads (all cores)")
    add("--force", action="store_true", help="replace an existing store")
    given = parser.parse_args(arguments)
    origin = {"route": "twin", "name": given.name, "scale": given.scale, "seed": given.seed}
    try:
        source = synthetic_source(given.name, given.scale, given.seed, n_jobs=given.jobs)
        made = write_blocks(
            source,
            given.out,
            memory=int(given.memory),
            force=given.force,
            origin=origin,
        )
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    n_rows, n_columns = made.shape
    print(f"{given.out}: {n_rows:,} rows, {n_columns:,} columns, {made.nnz:,} entries")
    return 0


if __name__ == "__main__":
    sys.exit(main())
