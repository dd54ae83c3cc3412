"""Build wheel and sdist, install each into clean environments, and try them: ``make matrix``.

Python 3.11 to 3.14, each with the lowest dependencies that pyproject.toml allows (the lowest that
have a wheel for that Python) and with the newest. uv fetches an interpreter that is not here, where
it can; one that cannot be had is told and fails nothing, unless it was asked for by ``--python``.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
# Of the dependencies in pyproject.toml alone, not of theirs: these have bounds of their own.
DEPENDENCIES = {
    "newest": [],
    "lowest": ["--resolution", "lowest-direct", "--only-binary", ":all:", "-r", "pyproject.toml"],
}

# Everything that an installed package must do at the least, from another folder than the sources.
SMOKE = """
import sys, warnings
from importlib.resources import files
warnings.simplefilter("error")
import dplasso
assert "site-packages" in dplasso.__file__
assert (files("dplasso") / "py.typed").is_file()
from dplasso.datasets import load_adult
train = load_adult("train")
for kind in (dplasso.DPLassoClassifier, dplasso.DPLogisticRegression):
    model = kind(epsilon=1.0, classes=[-1, 1]).fit(train.X, train.y)
    assert model.score(train.X, train.y) > 0.8
    model.save("model.npz")
    assert dplasso.load("model.npz").privacy_.is_private
for name in dplasso.__all__:
    getattr(dplasso, name)
"""
COMMANDS = (["--version"], ["show", "model.npz"], ["budget", "--epsilon", "1"])


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command; raise CalledProcessError with what it said if it fails."""
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True)


def build(into: Path) -> list[Path]:
    """Build the sdist, and the wheel from it, as a package index gets them."""
    run(sys.executable, "-m", "build", "--outdir", into)
    return sorted(into.iterdir())


def try_one(place: Path, version: str, dependencies: str, package: Path, extras: str) -> str:
    """Install a package into a fresh environment and try it; return what came of it.

    Raises CalledProcessError if there is no such interpreter or anything fails.
    """
    run("uv", "venv", "--quiet", "--python", version, "environment", cwd=place)
    python = place / "environment" / "bin" / "python"
    began = time.perf_counter()
    install = ("uv", "pip", "install", "--quiet", "--python", python)
    if DEPENDENCIES[dependencies]:
        run(*install, *DEPENDENCIES[dependencies])
    run(*install, f"dplasso{extras} @ {package.as_uri()}")
    installed = time.perf_counter()
    run(python, "-c", SMOKE, cwd=place)
    for command in COMMANDS:
        run(python.with_name("dplasso"), *command, cwd=place)
    tried = time.perf_counter()
    packages = next((place / "environment" / "lib").glob("python*/site-packages"))
    numpy = next(packages.glob("numpy-*.dist-info")).name.split("-")[1].removesuffix(".dist")
    size = sum(one.lstat().st_size for one in packages.rglob("*") if "__pycache__" not in one.parts)
    return (
        f"installed in {installed - began:.0f} s, {size / 1e6:.0f} MB, numpy {numpy}; "
        f"tried in {tried - installed:.0f} s"
    )


def main() -> None:
    """Run the matrix and end with 1 if anything fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", choices=VERSIONS)
    parser.add_argument("--dependencies", action="append", choices=list(DEPENDENCIES))
    asked = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        dist = Path(folder) / "dist"
        packages = build(dist)
        print(*(f"{one.name}: {one.stat().st_size:,} bytes" for one in packages), sep="\n")
        sdist, wheel = (
            next(one for one in packages if one.name.endswith(ending))
            for ending in (".tar.gz", ".whl")
        )
        cases = [
            (version, dependencies, wheel, "")
            for version in asked.python or VERSIONS
            for dependencies in asked.dependencies or DEPENDENCIES
        ]
        cases += [(cases[0][0], "newest", sdist, ""), (cases[0][0], "newest", wheel, "[all]")]
        for number, (version, dependencies, package, extras) in enumerate(cases):
            place = Path(folder) / str(number)
            place.mkdir()
            try:
                outcome = try_one(place, version, dependencies, package, extras)
            except subprocess.CalledProcessError as error:
                absent = "venv" in error.cmd and not asked.python
                failed |= not absent
                outcome = "no such interpreter here" if absent else f"FAILED\n{error.stderr}"
            kind = "sdist" if package == sdist else f"wheel{extras}"
            print(f"Python {version}, {dependencies} dependencies, {kind}: {outcome}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
