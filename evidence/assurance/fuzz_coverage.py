"""The coverage-guided half of the fuzzer: one target, in a process that atheris owns.

    python -m evidence.assurance.fuzz_coverage TARGET INPUTS SEED FOLDER

The modules a target names are compiled with counters on their branches; numba's kernels cannot be,
so none of those modules holds any. What atheris mutates is corrupted as by number half the
time, so that checksums fit.
"""

import json
import random
import sys
from dataclasses import asdict
from pathlib import Path

_ARCHIVE = (
    *("dplasso.files.archive", "dplasso.model", "dplasso.checkpoint.session"),
    *("dplasso.privacy.statement", "dplasso.privacy.parameters"),
)
COVERED = {
    "svmlight": ("dplasso.data.svmlight", "dplasso.data.source_files"),
    "compressed": ("dplasso.data.svmlight", "dplasso.data.source_files"),
    "npz": ("dplasso.data.npz",),
    "text": ("dplasso.data.text_tables", "dplasso.data.table_batches"),
    "model": _ARCHIVE,
    "checkpoint": _ARCHIVE,
}
# Between them these import every module with kernels that a target needs, and none of the above.
KERNELS = (
    *("dplasso.data.svmlight_parser", "dplasso.matrix.compressed", "dplasso.matrix.orientations"),
    *("dplasso.frank_wolfe.solve", "dplasso.matrix.unit_rows"),
    *("dplasso.selection.registry", "evidence.audit.replay"),
)


def main() -> None:
    """Run; atheris ends the process."""
    import atheris

    name, count, seed, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    # What holds kernels must be there before: numba cannot compile counters.
    for module in KERNELS:
        __import__(module)
    with atheris.instrument_imports(include=list(COVERED[name])):
        for module in COVERED[name]:
            __import__(module)
        from evidence.assurance.fuzz import Tally, _count_failures, judge
        from evidence.assurance.fuzz_targets import targets
    target = targets()[name]
    corpus = folder / "corpus"
    corpus.mkdir(parents=True)
    for number, data in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(data)
        judge(target, data, folder / "input")  # compiles
    tally = Tally()
    found: list[tuple[int, str]] = []

    def report() -> None:
        tally.failed = len(found)
        _count_failures(tally, found)
        (folder / "report.json").write_text(json.dumps(asdict(tally)))

    def read(data: bytes) -> None:
        outcome, why = judge(target, data, folder / "input")
        tally.inputs += 1
        setattr(tally, outcome, getattr(tally, outcome) + 1)
        if why:
            (folder / f"failed-{tally.inputs}").write_bytes(data)
            found.append((tally.inputs, why))
        if why or tally.inputs % 200 == 0 or tally.inputs >= count:
            report()

    def mutate(data: bytes, most: int, number: int) -> bytes:
        rng = random.Random(number)
        if rng.random() < 0.5:
            return atheris.Mutate(data, most)[:most]
        try:
            return target.corrupt(data, rng)[:most]
        except Exception:
            return atheris.Mutate(data, most)[:most]

    options = [f"-runs={count}", f"-seed={seed + 1}", "-max_len=20000", "-timeout=30"]
    options += ["-rss_limit_mb=12000", f"-artifact_prefix={folder}/artifact-", str(corpus)]
    atheris.Setup([sys.argv[0], *options], read, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
