"""The command line: ``dplasso fit | predict | evaluate | budget | demo``.

Everything heavy (numba, scikit-learn, matplotlib, dp-accounting) is imported with the module of a
command, and that when the command is called: ``dplasso --help`` answers at once.
"""

import sys


def main() -> None:
    """Run the command line with the arguments of this process and exit with its code.

    Exit codes: 0 done, 1 an error told in one sentence, 2 wrong usage, 130 interrupted.
    """
    if sys.flags.optimize > 1:
        # Options are made of docstrings.
        sys.exit("dplasso: the command line needs docstrings: run Python without -OO")
    try:
        from dplasso.cli.app import app

        app(prog_name="dplasso")
    except KeyboardInterrupt:  # outside a command: while the modules load, or on the way out
        sys.exit(130)
