"""``dplasso data``: the group of commands about data sets and stores."""

import typer

from dplasso.cli import data_info

app = typer.Typer(
    name="data",
    help="Data sets and stores: what is in them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.command("info", epilog=data_info.EXAMPLES)(data_info.info)
