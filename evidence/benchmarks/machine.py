"""What a figure was measured on."""

from evidence.paper.machine import describe_machine, installed, machine_line, usable_cores

__all__ = ["describe_machine", "installed", "machine_line", "usable_cores"]
