"""Fits that go on where they were interrupted: what the stages have found, in a file."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from smrmf._files import check_place, remove_abandoned
from smrmf._records import (
    NoRecordError,
    put_together,
    read_about,
    read_tree,
    record_types,
    take_apart,
    write_trees,
)
from smrmf._validation import Interval, ParameterError, check_parameters
from smrmf.factorization._fit_key import difference, fit_key
from smrmf.factorization._loop import LoopState, to_go_on
from smrmf.factorization._memory import LoopMemory, Memory, NoMemory
from smrmf.factorization._points import ManifoldInput, Searched
from smrmf.factorization._slots import Slots
from smrmf.factorization._start import FirstIndicator, Start

FORMAT = {"file": "checkpoint of smrmf", "format": 1}
START, LOOP = "start", "loop"
# The records of the stages before the loop; those of the loop have the states of the slots, too.
STAGE_TYPES = record_types([Searched, FirstIndicator])
# Writing takes at most one part in so many of the time.
WRITING_SHARE = 10
# A tree of plain words, and its arrays.
Taken = tuple[Any, list[np.ndarray]]


class CheckpointError(ValueError):
    """A file is no checkpoint, or one of another fit."""


class Checkpoint:
    """Write what a fit has found so far to a file, from which an equal fit goes on.

    A callback of the methods of the loop: FastSMRMF, SMRMF, RMNMF, AMRMF, APMF, SelectiveRMNMF and your
    own. The file gets the neighbours when they have been found, then the start, then the state of the loop
    every now and then and when it ends. A later fit with the same file, of the same table with the same
    parameters, begins with what is there. Its result is that of a fit which nobody has interrupted, to the
    last bit.

    The file of another table, method, version or parameter is refused. ``n_jobs`` may be another, and so
    may ``max_iter`` and ``tol``: with more iterations or a smaller tolerance the loop goes on from its end.
    Where it would have ended earlier, it begins again after the start.

    With ``random_state=None`` or a ``RandomState`` the fit goes on with the numbers that were drawn: remove
    the file for others.

    Parameters
    ----------
    path : str or path
        The file; its folder must exist. It is complete or absent, whatever happens, and stays after the
        fit. Who has it has the neighbours of your data. To read one runs nothing that is in it; still, take
        your own.
    seconds : float, default=60
        Least time between two states of the loop. Where writing one takes long, it is ten times that.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from smrmf import Checkpoint, FastSMRMF
    >>> X, _ = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = Checkpoint(Path(folder) / "iris.ckpt")
    ...     model = FastSMRMF(3, max_iter=5, tol=0, random_state=0).set_callbacks(checkpoint).fit(X)
    ...     longer = model.set_params(max_iter=10).fit(X)
    >>> longer.n_iter_
    10
    """

    def __init__(self, path: str | os.PathLike[str], *, seconds: float = 60.0) -> None:
        check_parameters("Checkpoint", {"seconds": seconds}, {"seconds": (Interval(0),)})
        self.path = Path(path)
        self.seconds = seconds

    def setup(self, estimator: Any, context: Any) -> None:
        """Refuse an estimator that would not write."""
        if not hasattr(estimator, "_slots"):
            raise ParameterError(
                f"{type(estimator).__name__} writes no checkpoints, as methods of the loop such as FastSMRMF "
                "do: leave the callback out."
            )

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: the file stays."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing: the fit itself gives and takes what is kept."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Never ask to stop."""
        return False


class FitMemory(Memory):
    """What a fit has found so far, in the file of a checkpoint.

    With every stage goes the state of the random numbers after it. ``stages`` are those that the file has of
    an earlier fit, ``found`` those of this one, taken apart.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        key: dict[str, Any],
        draws: np.random.RandomState,
        stages: Collection[str] = (),
    ) -> None:
        self.draws, self.warnings = draws, []
        self.checkpoint, self.key, self.stages = checkpoint, key, stages
        self.found: dict[str, Taken] = {}

    @classmethod
    def begin(cls, checkpoint: Checkpoint, key: dict[str, Any], draws: np.random.RandomState) -> FitMemory:
        """Look into the file, if there is one; refuse that of another fit."""
        path = checkpoint.path
        check_place(path, overwrite=True)
        remove_abandoned(path)
        if not path.exists():
            return cls(checkpoint, key, draws)
        with _told_of(path):
            about = read_about(path)
            if {name: about[name] for name in FORMAT} != FORMAT:
                raise ValueError("it has another format")
            stages, other = about["trees"], difference(about["key"], key)
        if other:
            raise CheckpointError(
                f"{path} is the checkpoint of another fit, {other}: give another path, or remove the file to "
                "begin anew."
            )
        # Of numbers that nobody has given, those of the file: the generator of NumPy itself is left alone.
        own = np.random.RandomState() if draws is np.random.mtrand._rand else draws
        return cls(checkpoint, key, own, stages)

    def recall(self, stage: str) -> Any:
        if stage not in self.stages:
            return None
        with _told_of(self.checkpoint.path):
            tree, arrays = read_tree(self.checkpoint.path, stage)
            drawn, found = put_together(tree, STAGE_TYPES, arrays)
            self.draws.set_state(drawn)
        self.found[stage] = tree, arrays
        return found

    def keep(self, stage: str, found: Any) -> None:
        arrays: list[np.ndarray] = []
        drawn = self.draws.get_state(legacy=False)
        self.found[stage] = take_apart((drawn, found), STAGE_TYPES, arrays), arrays
        self.write()

    def of_loop(self, slots: Slots, start: Start, tol: float) -> StateMemory:
        return StateMemory(self, slots, start, tol)

    def write(self, **more: Taken) -> None:
        """Write all that was found, and more; a file that cannot be written is no reason to lose the fit."""
        path = self.checkpoint.path
        try:
            write_trees(path, FORMAT | {"key": self.key}, self.found | more)
            self.warnings.clear()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            message = f"The checkpoint {path} could not be written ({reason}): it is missing or old."
            self.warnings[:] = [(message, RuntimeWarning)]


class StateMemory(LoopMemory):
    """The last state of a loop, in the file of a checkpoint."""

    def __init__(self, memory: FitMemory, slots: Slots, start: Start, tol: float) -> None:
        self.memory, self.tol = memory, tol
        self.types = record_types([LoopState, type(slots.affinity), type(slots.points)])
        # A second copy of these would be in memory, and on disk.
        self.given = {"points": start.scaled}
        self.due = time.monotonic() + memory.checkpoint.seconds
        self.checked = False
        # The iteration that the file has. Not the state, which would keep arrays that the loop lets go.
        self.written: int | None = None

    def recall(self, max_iter: int) -> LoopState | None:
        """Return the state from which the loop may go on, if there is one."""
        path = self.memory.checkpoint.path
        if LOOP not in self.memory.stages:
            return None
        with _told_of(path):
            tree, arrays = read_tree(path, LOOP)
            of_tol, state = put_together(tree, self.types, arrays, self.given)
        found = to_go_on(state, of_tol, max_iter, self.tol)
        self.written = None if found is None else found.n_iter
        return found

    def see(self, state: LoopState) -> None:
        """Write a state if it is time; refuse one that can never be written at once."""
        if not self.checked or time.monotonic() >= self.due:
            self.checked = True
            taken = self._take_apart(state)
            if time.monotonic() >= self.due:
                self._write(state, taken)

    def end(self, state: LoopState) -> None:
        """Write the last state, unless the file has it."""
        if self.written != state.n_iter:
            self._write(state, self._take_apart(state))

    def _write(self, state: LoopState, taken: Taken) -> None:
        begun = time.monotonic()
        self.memory.write(**{LOOP: taken})
        self.written, now = state.n_iter, time.monotonic()
        self.due = now + max(self.memory.checkpoint.seconds, WRITING_SHARE * (now - begun))

    def _take_apart(self, state: LoopState) -> Taken:
        arrays: list[np.ndarray] = []
        try:
            return take_apart((self.tol, state), self.types, arrays, self.given), arrays
        except NoRecordError as error:
            raise CheckpointError(
                f"The state of a slot has a part of the type {error}, which no checkpoint can hold: let it "
                "be of arrays, CSR matrices, numbers, and dataclasses or named tuples of these from the "
                "module of the slot, or fit without a checkpoint."
            ) from error


def memory_of(model: Any, given: ManifoldInput, draws: np.random.RandomState) -> Memory:
    """Return what a fit remembers: what the file has of the checkpoint among its callbacks."""
    found = [
        callback for callback in getattr(model, "_skl_callbacks", ()) if isinstance(callback, Checkpoint)
    ]
    if len(found) > 1:
        raise ParameterError("A fit has one checkpoint: leave out all but one of these callbacks.")
    if not found:
        return NoMemory(draws)
    return FitMemory.begin(found[0], fit_key(model, given.data, given.magnitude), draws)


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """Tell of a file whatever is found wrong with it, in one sentence."""
    try:
        yield
    except MemoryError:
        raise
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be read ({error.strerror or error}): give another path."
        ) from error
    # Whatever zipfile, json and NumPy may stumble over in a file that is damaged or of something else.
    except Exception as error:
        raise CheckpointError(
            f"{path} is damaged, or no checkpoint: give another path, or remove the file to begin anew."
        ) from error
