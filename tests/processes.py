"""Python in a process of its own, which imports what this one does."""

import os
import subprocess
import sys
from pathlib import Path


def python(*words, timeout=1800, **variables):
    """Run Python with these arguments and variables of the environment; it has to succeed."""
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env=os.environ | {"PYTHONPATH": paths} | variables,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done
