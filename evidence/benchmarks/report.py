"""Results on disk: one JSON file per comparison, and a report of all of them with pictures."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

from matplotlib.figure import Figure

from evidence.benchmarks import access, end_to_end, gap, growth, memory, table3, transposition
from evidence.benchmarks.machine import machine_line

FORMAT = 1
COMPARISONS: dict[str, ModuleType] = {
    "table3": table3,
    "end_to_end": end_to_end,
    "transpose": transposition,
    "growth": growth,
    "gap": gap,
    "memory": memory,
    "access": access,
}


def read_results(folder: Path, comparison: str) -> dict[str, Any] | None:
    """Read what an earlier run left, or None."""
    path = folder / f"{comparison}.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text())
    return found if found.get("format") == FORMAT else None


def add_case(
    folder: Path,
    profile: str,
    comparison: str,
    case: str,
    machine: dict[str, Any],
    result: dict[str, Any],
) -> None:
    """Add a case to a comparison's file; what another machine or version left is dropped."""
    earlier = read_results(folder, comparison)
    known = earlier["cases"] if earlier and earlier["machine"] == machine else {}
    content = {
        "format": FORMAT,
        "comparison": comparison,
        "profile": profile,
        "machine": machine,
        "cases": {**known, case: result},
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{comparison}.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n")
    temporary.replace(path)


def write_report(folder: Path, profile: str) -> Path:
    """Write report.md and the pictures from the JSON files there are."""
    parts = [f"# Benchmarks ({profile})"]
    machines: list[str] = []
    for name, module in COMPARISONS.items():
        found = read_results(folder, name)
        if found is None:
            continue
        line = machine_line(found["machine"])
        if line not in machines:
            machines.append(line)
            parts.append(f"Measured on: {line}.")
        cases = found["cases"]
        measured = {case: one for case, one in cases.items() if "left_out" not in one}
        if measured:
            parts.append(module.section(measured))
            picture(module, measured, folder / f"{name}.png")
            parts.append(f"![{name}]({name}.png)")
        parts.extend(
            f"Left out: {name}, {case}: {one['left_out']}."
            for case, one in cases.items()
            if "left_out" in one
        )
    path = folder / "report.md"
    path.write_text("\n\n".join(parts) + "\n")
    return path


def picture(module: ModuleType, results: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw a comparison into a PNG file."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    module.draw(results, figure)
    figure.savefig(path, dpi=120)
