"""The configuration file, read into dataclasses; a misspelt or missing entry is named."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

CONFIG = Path(__file__).with_name("config.toml")


class ConfigError(ValueError):
    """The configuration file says something that is not understood."""


@dataclass(frozen=True)
class DataSpec:
    """Where a data set comes from (see config.toml)."""

    name: str
    twin: str | None = None
    file: str | None = None
    adult: int = 0
    scale: float = 1.0
    n_rows: int | None = None
    n_columns: int | None = None
    seed: int = 0
    binary: bool = False
    paper: str | None = None
    repeats: int | None = None
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table3:
    """Training loops against each other: the paper's table 3."""

    radius: float
    n_iter: int
    delta: float
    epsilons: tuple[float, ...]
    competitors: tuple[str, ...]
    repeats: int
    limit: float
    limit_fast: float
    data: tuple[DataSpec, ...]


@dataclass(frozen=True)
class EndToEnd:
    """Whole fits from a CSR in memory, against other trainers."""

    radius: float
    n_iter: int
    delta: float
    epsilon: float
    competitors: tuple[str, ...]
    inverse_penalty: float
    passes: int
    repeats: int
    data: tuple[DataSpec, ...]


@dataclass(frozen=True)
class Transposition:
    """The second orientation of X."""

    threads: tuple[int, ...]
    repeats: int
    data: tuple[DataSpec, ...]


@dataclass(frozen=True)
class Growth:
    """Time per iteration against the sizes of X."""

    radius: float
    n_iter: int
    delta: float
    epsilon: float
    competitors: tuple[str, ...]
    repeats: int
    limit: float
    columns: tuple[int, ...]
    column_row: int
    column_ratio: int
    rows: tuple[int, ...]
    row_columns: int
    touched: tuple[int, ...]
    touched_columns: int


@dataclass(frozen=True)
class Gap:
    """What the drift tolerance costs in objective, gap and AUC."""

    radius: float
    n_iter: int
    tolerances: tuple[float | str, ...]
    algorithm_1: bool
    private_iter: int
    private_radius: float
    epsilons: tuple[float, ...]
    delta: float
    seeds: int
    data: tuple[DataSpec, ...]


@dataclass(frozen=True)
class Memory:
    """What a fit allocates on top of the caller's matrix."""

    radius: float
    n_iter: int
    delta: float
    epsilon: float
    data: tuple[DataSpec, ...]


@dataclass(frozen=True)
class Access:
    """The training loop against bare random accesses."""

    radius: float
    n_iter: int
    delta: float
    epsilon: float
    repeats: int
    data: tuple[DataSpec, ...]


Settings = Memory | Access | Table3 | EndToEnd | Transposition | Growth | Gap
KINDS: dict[str, type[Settings]] = {
    "table3": Table3,
    "end_to_end": EndToEnd,
    "transpose": Transposition,
    "growth": Growth,
    "gap": Gap,
    "memory": Memory,
    "access": Access,
}


def _build(kind: type, entries: dict[str, Any], where: str) -> Any:
    """Make a dataclass of a table, lists as tuples."""
    known = {field.name for field in fields(kind)}
    unknown = sorted(set(entries) - known)
    if unknown:
        raise ConfigError(f"{where}: unknown entry {unknown[0]!r}; known: {', '.join(known)}")
    entries = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entries.items()
    }
    if "data" in entries:
        entries["data"] = tuple(
            _build(DataSpec, spec, f"{where}.data[{i}]") for i, spec in enumerate(entries["data"])
        )
    try:
        return kind(**entries)
    except TypeError as error:
        raise ConfigError(f"{where}: {error}") from None


def read_config(path: Path, profile: str) -> dict[str, Settings]:
    """Read one profile: settings by comparison, in the file's order.

    Parameters
    ----------
    path : Path
        A TOML file laid out like config.toml.
    profile : str
        "full" or "quick".

    Raises
    ------
    ConfigError
        Naming the entry that is wrong.
    """
    with path.open("rb") as file:
        try:
            tables = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path}: {error}") from None
    if profile not in tables:
        raise ConfigError(f"{path}: there is no table [{profile}]; there is {', '.join(tables)}")
    found = {}
    for name, entries in tables[profile].items():
        if name not in KINDS:
            raise ConfigError(
                f"{path}: there is no comparison {name!r}; there is {', '.join(KINDS)}"
            )
        found[name] = _build(KINDS[name], entries, f"{path}: {profile}.{name}")
    return found
