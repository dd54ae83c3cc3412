"""What a figure was measured on: processor, memory, versions; never a name of the machine."""

import os
import platform
import runpy
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_CORES = Path(__file__).parent.parent / "src/dplasso/runtime/threads.py"
_PACKAGES = ("dplasso", "numba", "numpy", "scipy", "scikit-learn", "dp-accounting", "skglm", "copt")


def _first_value(path: str, key: str) -> str | None:
    """Return the first value of a key in one of Linux's "key : value" files."""
    try:
        text = Path(path).read_text()
    except OSError:
        return None
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def _last_level_cache() -> str | None:
    """Return the size of the largest cache of the first core, as Linux writes it."""
    sizes = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            sizes[int((index / "level").read_text())] = (index / "size").read_text().strip()
        except (OSError, ValueError):
            continue
    return sizes[max(sizes)] if sizes else None


def status(pid: int | str, *fields: str) -> dict[str, int]:
    """Return fields of a process's status and io in bytes, such as RssAnon, VmHWM, read_bytes.

    Raises
    ------
    OSError
        If the system or the process does not tell them.
    """
    found = {}
    for name in ("status", "io") if any("bytes" in field for field in fields) else ("status",):
        for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
            field, _, value = line.partition(":")
            if field in fields:
                found[field] = int(value.split()[0]) * (1 if name == "io" else 1024)
    if set(found) != set(fields):
        raise OSError(f"this system does not tell {', '.join(fields)}")
    return found


def usable_cores() -> int:
    """Return the number of cores this process may use, as the package counts them.

    Nothing of it is imported: planted bugs are to be imported in its place.
    """
    return int(runpy.run_path(str(_CORES))["usable_cores"]())


def installed(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe_machine() -> dict[str, Any]:
    """Describe processor, memory and versions, JSON-safe."""
    memory = None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    processor = _first_value("/proc/cpuinfo", "model name")
    return {
        "processor": processor or platform.processor() or platform.machine(),
        "cores": usable_cores(),
        "last_level_cache": _last_level_cache(),
        "memory_gib": memory,
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {package: installed(package) for package in _PACKAGES},
    }


def machine_line(machine: dict[str, Any]) -> str:
    """Return a machine description in one line; what is not known is left out."""
    versions = ", ".join(
        f"{name} {number or '(none)'}" for name, number in machine["versions"].items()
    )
    known = (
        (machine["processor"], "{}"),
        (machine["cores"], "{} cores"),
        (machine["last_level_cache"], "{} last-level cache"),
        (machine["memory_gib"], "{} GiB"),
        (machine["system"], "{}"),
        (machine["python"], "Python {}"),
    )
    return f"{', '.join(text.format(value) for value, text in known if value)}; {versions}"
