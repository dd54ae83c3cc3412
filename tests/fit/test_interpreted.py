"""The kernels are plain Python too: without a compiler they take the same steps."""

import json
import os
import subprocess
import sys

from fit import interpreted_fits


def test_without_the_compiler_every_fit_takes_the_same_steps():
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", interpreted_fits.__file__],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    interpreted = json.loads(done.stdout)
    assert interpreted == interpreted_fits.transcripts()
    # Fits that differ do differ: the comparison is not one of constants.
    assert interpreted["bucket"] != interpreted["noisy-max"] != interpreted["plain"]
