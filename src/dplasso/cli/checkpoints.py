"""``fit --checkpoint``: what the command does around a fit that can be resumed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dplasso.cli.files import check_outputs
from dplasso.cli.options import CheckpointOptions
from dplasso.cli.output import print_note

if TYPE_CHECKING:
    from dplasso.estimators.load import Estimator


@dataclass(frozen=True)
class CheckpointSession:
    """A checkpoint that this process holds.

    `path`: where; None if none is wanted.
    `steps`: steps it held when the fit was resumed; None for a new fit.
    `begin`: for `train_with_bar`.
    """

    path: Path | None
    steps: int | None
    begin: Any

    def finish(self) -> None:
        """Note that the outputs are in place."""
        if self.path is not None:
            from dplasso.checkpoint.session import mark_finished

            mark_finished(self.path)


@contextmanager
def kept_checkpoint(
    estimator: "Estimator",
    options: CheckpointOptions,
    *,
    others: list[Path],
    force: bool,
) -> Iterator[CheckpointSession]:
    """Hold the checkpoint during a fit; refuse at once what could not be kept or resumed.

    `estimator`: what will be fitted; its `classes` may still be missing.
    `options`: where, how often, and whether to go on.
    `others`: files that the command reads or will write.
    `force`: whether a new fit may overwrite a checkpoint.
    """
    path, resume = options.checkpoint, options.resume
    if path is None:
        if resume:
            raise typer.BadParameter("--resume needs --checkpoint PATH: the file to go on from")
        yield CheckpointSession(None, None, None)
        return
    from dplasso.checkpoint.session import check_resumable, keep_checkpoints
    from dplasso.files.lock import claim

    if path.resolve() in {other.resolve() for other in others}:
        raise ValueError(f"{path} is named twice; give the checkpoint a file of its own")
    check_outputs([path], force=force or resume)
    with claim(path):
        stored = check_resumable(estimator, path) if resume else None
        steps = None if stored is None else len(stored.release)
        begin = keep_checkpoints(path, stored, options.checkpoint_seconds)
        try:
            yield CheckpointSession(path, steps, begin)
        except KeyboardInterrupt:
            if path.exists():
                print_note(f"{path} keeps what was done: go on with --resume", style="yellow")
            raise
