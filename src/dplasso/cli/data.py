"""``dplasso data``: the group of commands about data sets and stores."""

from dplasso.cli import data_fetch, data_info, data_list
from dplasso.cli.commands import add_command, command_group

app = command_group("data", "Data sets and stores: list and fetch them, and see what is in them.")
add_command(app, "info", data_info.info, data_info.EXAMPLES)
add_command(app, "list", data_list.list_sets, data_list.EXAMPLES)
add_command(app, "fetch", data_fetch.fetch, data_fetch.EXAMPLES)
