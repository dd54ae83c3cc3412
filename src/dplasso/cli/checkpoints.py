"""``fit --checkpoint``: what the command does around a fit that can be resumed.

A fit that is charged to a ledger keeps a checkpoint in any case, beside its model, and holds room
for the model before it is charged: what was paid for is not lost.
"""

import errno
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dplasso.cli.commands import command_line
from dplasso.cli.files import check_outputs
from dplasso.cli.options import CheckpointOptions
from dplasso.cli.output import print_note

if TYPE_CHECKING:
    from dplasso.estimators.load import Estimator
    from dplasso.fit.hooks import Begun, Session


class KeptFit:
    """A fit around which a checkpoint may be kept.

    `path`: where; None if none is kept.
    `steps`: steps it held when the fit was resumed; None for a new fit.
    `begin`: for `train_with_bar`.
    `temporary`: where the model is to be written first, for which room is held.
    """

    path: Path | None = None
    steps: int | None = None
    begin: Any = None
    temporary: str | None = None
    _passing = False

    def finish(self) -> None:
        """Note that the outputs are in place; a checkpoint that nobody asked for goes."""
        if self.path is None:
            return
        from dplasso.checkpoint.session import note_finished

        if self._passing:
            self.path.unlink()
        else:
            note_finished(self.path)


@dataclass(frozen=True)
class CheckpointPlace:
    """Where a fit keeps its checkpoint.

    `path`: None for nowhere.
    `passing`: whether it is only kept until the model is written.
    """

    path: Path | None
    passing: bool = False


def checkpoint_place(
    options: CheckpointOptions, model: Path | None, *, charged: bool
) -> CheckpointPlace:
    """Return where a fit keeps its checkpoint: as asked, or beside the model that is paid for.

    `options`: where, and whether to go on.
    `model`: where the model is written.
    `charged`: whether a ledger is charged.

    Raises typer.BadParameter if a model is paid for and not written, or there is nothing to go on
    with.
    """
    if charged and model is None:
        raise typer.BadParameter("--ledger needs --model OUT: what is paid for has to be written")
    if options.checkpoint is not None:
        return CheckpointPlace(options.checkpoint)
    if charged and model is not None:
        return CheckpointPlace(model.with_name(f"{model.name}.checkpoint"), passing=True)
    if options.resume:
        raise typer.BadParameter("--resume needs --checkpoint PATH: the file to go on from")
    return CheckpointPlace(None)


def refuse_unfinished(place: CheckpointPlace, outputs: list[Path]) -> None:
    """Refuse to begin a fit where an unfinished one has its checkpoint; say how it goes on.

    `place`: where the checkpoint would be kept.
    `outputs`: files that the command will write.

    Raises FileExistsError that names the command.
    """
    path = place.path
    if path is None or not _is_unfinished(path):
        return
    there = any(output.exists() for output in outputs)
    command = command_line("--resume", *(["--force"] if there else []))
    # A system's error is shown as it stands, and so is the command in it.
    raise FileExistsError(
        errno.EEXIST,
        f"{path} keeps a fit that has not ended: go on, spending nothing twice, with {command} "
        "(--force without --resume gives it up and pays again, for another fit)",
    )


def _is_unfinished(path: Path) -> bool:
    """Return whether a file is the checkpoint of a fit that has not ended."""
    from dplasso.checkpoint.session import read_checkpoint
    from dplasso.errors import CheckpointError

    try:
        return path.is_file() and not read_checkpoint(path).finished
    except CheckpointError:
        return False


@contextmanager
def kept_checkpoint(
    estimator: "Estimator",
    options: CheckpointOptions,
    place: CheckpointPlace,
    *,
    model: Path | None,
    others: list[Path],
    force: bool,
) -> Iterator[KeptFit]:
    """Hold the checkpoint during a fit; refuse at once what could not be kept or resumed.

    `estimator`: what will be fitted; its `classes` may still be missing.
    `options`: how often to write, and whether to go on.
    `place`: where the checkpoint is.
    `model`: where the model is written, if room is to be held for it.
    `others`: files that the command reads or will write.
    `force`: whether a new fit may overwrite a checkpoint.
    """
    kept, path, resume = KeptFit(), place.path, options.resume
    if path is None:
        yield kept
        return
    from dplasso.checkpoint.session import check_resumable, keep_checkpoints
    from dplasso.files.lock import claim
    from dplasso.files.room import held_room
    from dplasso.fit.room import model_bytes

    if path.resolve() in {other.resolve() for other in others}:
        raise ValueError(f"{path} is named twice; give the checkpoint a file of its own")
    check_outputs([path], force=force or resume)
    begun = False
    with claim(path), ExitStack() as held:
        stored = check_resumable(estimator, path) if resume else None
        if not resume and _is_unfinished(path):
            print_note(f"{path} kept a fit that had not ended; --force gives it up", style="yellow")
        keep = keep_checkpoints(path, stored, options.checkpoint_seconds)

        def begin(fit: "Begun") -> "Session":
            nonlocal begun
            if model is not None:
                size = model_bytes(
                    fit.method,
                    fit.mechanism,
                    fit.records.shape[1],
                    fit.task.classes,
                    fit.records.feature_names,
                    fit.records.origin,
                )
                kept.temporary = held.enter_context(held_room(model, size))
            session, begun = keep(fit), True
            return session

        kept.path, kept.begin, kept._passing = path, begin, place.passing
        kept.steps = None if stored is None else len(stored.release)
        try:
            yield kept
        except BaseException as error:
            if begun and path.exists():
                error.add_note(
                    f"{path} keeps what was done: go on, spending nothing twice, with "
                    + command_line("--resume")
                )
            raise
