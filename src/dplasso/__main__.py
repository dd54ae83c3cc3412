"""Run the command line as ``python -m dplasso``."""

from dplasso.cli import main

if __name__ == "__main__":
    main()
