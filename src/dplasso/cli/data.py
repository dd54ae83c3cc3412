"""``dplasso data``: the group of commands about data sets and stores."""

import typer

from dplasso.cli import data_fetch, data_info, data_list, data_twin

app = typer.Typer(
    name="data",
    help="Data sets and stores: list, fetch and generate them, and see what is in them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.command("info", epilog=data_info.EXAMPLES)(data_info.info)
app.command("list", epilog=data_list.EXAMPLES)(data_list.list_sets)
app.command("fetch", epilog=data_fetch.EXAMPLES)(data_fetch.fetch)
app.command("twin", epilog=data_twin.EXAMPLES)(data_twin.twin)
