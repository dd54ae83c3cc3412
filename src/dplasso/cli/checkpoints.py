"""``fit --checkpoint``: keep a checkpoint around a fit.

A fit that is charged to a ledger always keeps a checkpoint, beside its model, so a paid model is
never lost.
"""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dplasso.checkpoint import read_checkpoint, session
from dplasso.cli import output
from dplasso.cli.app import command_line
from dplasso.errors import CheckpointError
from dplasso.files.disk import claim
from dplasso.fit.run import Begun, Session
from dplasso.model.linear import steps_of


@dataclass(frozen=True)
class CheckpointOptions:
    """Options of a fit that can be interrupted.

    Interruptions
    -------------
    checkpoint : PATH
        Save progress in this file, so that you can resume a fit that was killed. It is removed
        when the model is written.
    checkpoint_seconds : S >= 0
        How often the checkpoint is written.
    resume
        Resume from --checkpoint, with the same data and options. No budget is spent twice.
    """

    checkpoint: Path | None = None
    checkpoint_seconds: float = 5.0
    resume: bool = False


@dataclass
class Keeping:
    """A fit with a checkpoint at `path`, or without any."""

    path: Path | None = None
    # Steps in the checkpoint when the fit was resumed.
    steps: int | None = None
    begin: Any = None

    def finish(self) -> None:
        """Remove the checkpoint, because the outputs are in place."""
        if self.path is not None:
            self.path.unlink()


def checkpoint_of(model: Path) -> Path:
    """Return where the checkpoint of a model is, if it is not named."""
    return model.with_name(f"{model.name}.checkpoint")


def refuse_finished(checkpoint: Path | None, model: Path | None) -> None:
    """Refuse to resume a fit whose model is there and whose checkpoint is not."""
    if model is None or not model.exists():
        return
    place = checkpoint or checkpoint_of(model)
    if not place.exists():
        raise FileExistsError(
            f"{model} exists and the checkpoint {place} does not: the fit is finished, and there "
            "is nothing to resume"
        )


def refuse_unfinished(path: Path | None, model: Path | None) -> None:
    """Refuse to overwrite an unfinished fit; say how to resume it."""
    if path is None or not _is_unfinished(path):
        return
    force = ["--force"] if model is not None and model.exists() else []
    command = command_line("--resume", *force)
    # The text of a system error is printed unchanged, so the command can be copied.
    raise FileExistsError(
        errno.EEXIST,
        f"{path} holds an unfinished fit: resume it at no further cost with {command} "
        "(--force without --resume discards it and pays for another fit)",
    )


def _is_unfinished(path: Path) -> bool:
    """Return whether a file is a checkpoint: a fit removes it when its outputs are in place."""
    if not path.is_file():
        return False
    try:
        read_checkpoint(path)
    except CheckpointError:
        return False
    return True


@contextmanager
def kept_checkpoint(
    options: CheckpointOptions, path: Path | None, inputs: Iterable[Path | None], *, force: bool
) -> Iterator[Keeping]:
    """Keep a checkpoint during a fit; refuse at once what cannot be kept or resumed."""
    kept, resume = Keeping(path), options.resume
    if path is None:
        yield kept
        return
    output.check_outputs([path], inputs, force=force or resume)
    begun = False
    with claim(path):
        try:
            stored = read_checkpoint(path) if resume else None
        except CheckpointError as error:
            another = "to pay for another fit, leave --resume out and give --force"
            raise CheckpointError(str(error).rstrip("."), advice=another) from None
        if not resume and _is_unfinished(path):
            output.warn(f"{path} held an unfinished fit; --force discards it")

        def begin(fit: Begun) -> Session:
            nonlocal begun
            kept_fit = session.KeptFit(path, stored, options.checkpoint_seconds, fit)
            begun = True
            return kept_fit

        kept.begin = begin
        if stored is not None:
            kept.steps = steps_of(stored.released) + int(stored.state.get("done", 0))
        try:
            yield kept
        except BaseException as error:
            if begun and path.exists():
                error.add_note(
                    f"{path} holds the unfinished fit: resume it at no further cost with "
                    + command_line("--resume")
                )
            raise
