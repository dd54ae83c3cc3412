"""``dplasso data twin``: a store of the shape of one of the paper's data sets, generated."""

from pathlib import Path
from typing import Annotated

from dplasso.cli import options
from dplasso.cli.options import argument, option
from dplasso.cli.output import progress_bars
from dplasso.cli.stores import StoreOptions, new_store

EXAMPLES = options.examples(
    "dplasso data twin rcv1 rcv1.store",
    "dplasso data twin url url-tenth.store --scale 0.1 --seed 7",
    "dplasso data twin web web.store --memory 4GB",
    note="A twin has the rows, columns, entries and popularity of columns of its original, and "
    "labels that a sparse linear model explains; not its contents. The same seed gives the same "
    "twin on any machine, whatever the memory and the threads.",
)


def twin(
    name: Annotated[str, argument("NAME", "rcv1, news20, url, web or kdda.")],
    out: Annotated[Path, argument("OUT", "The store to make.")],
    *,
    scale: Annotated[
        float, option("--scale", "Factor on the numbers of rows and columns.", "F")
    ] = 1.0,
    seed: Annotated[int, option("--seed", "Seed of everything that is generated.", "S", min=0)] = 0,
    making: StoreOptions,
) -> None:
    """Generate a data set of the shape of one of the paper's, straight to disk."""
    from dplasso.datasets.synthetic.generate import synthetic_source

    new = new_store(out, making)
    origin = {"route": "twin", "name": name, "scale": scale, "seed": seed}
    with progress_bars() as bars:
        source = synthetic_source(name, scale, seed, n_jobs=making.threads)
        report = new.write(source, bars, origin)
    new.report(report)
