"""Finished chunks on disk, from which a later run can continue; no chunk is written in part."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tether.base.capacity import in_words
from tether.ensemble.chunk import Chunk

__all__ = ["Store", "StoreError"]

log = logging.getLogger("tether")
FORMAT = 1
DESCRIPTION = "ensemble.json"
ARRAYS = ("y", "yp", "t_end", "status", "counts", "drift", "moved")


class StoreError(ValueError):
    """The store cannot be used: it belongs to something else, or cannot be read."""


class Store:
    """A folder with one file for every chunk.

    Parameters
    ----------
    path : str or path
        The folder; made if it does not exist.
    name : str
        Fingerprint of the problem; a folder with a different one is refused.
    count : int
        Number of members.

    Attributes
    ----------
    trouble : str
        The error when a chunk could not be written; empty if there was none.
    """

    def __init__(self, path: str | os.PathLike[str], name: str, count: int) -> None:
        self.path = Path(path)
        self.trouble = ""
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"store must be a folder, but {self.path} is a file")
        self.path.mkdir(parents=True, exist_ok=True)
        self._check(name, count)

    def _check(self, name: str, count: int) -> None:
        place = self.path / DESCRIPTION
        if not place.exists():
            if any(self.path.iterdir()):
                raise StoreError(
                    f"store {self.path} is not empty and has no ensemble in it: pass another folder"
                )
            content = json.dumps({"format": FORMAT, "problem": name, "members": count})
            self._write(place, content.encode())
            return
        try:
            found = json.loads(place.read_text())
            known, version = found["problem"], found["format"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"store {self.path}: {DESCRIPTION} cannot be read ({error})"
            ) from error
        if version != FORMAT:
            raise StoreError(f"store {self.path} was written by another version of tether")
        if known != name:
            raise StoreError(
                f"store {self.path} has the members of another problem: function, arguments, "
                "starting values, times or options differ. Pass another folder, or delete this one"
            )

    def chunks(self) -> Iterator[Chunk]:
        """Read the chunks in the folder; those that cannot be read are deleted and solved again."""
        for place in sorted(self.path.glob("chunk-*.npz")):
            try:
                yield _read(place)
            except Exception as error:
                log.warning("store: %s cannot be read and is solved again (%s)", place, error)
                place.unlink(missing_ok=True)

    def write(self, chunk: Chunk) -> None:
        """Write a chunk; if that fails it stays in memory, and `trouble` says why."""
        place = self.path / f"chunk-{chunk.first:010d}-{chunk.last:010d}.npz"
        arrays = {name: getattr(chunk, name) for name in ARRAYS}
        notes = np.frombuffer(pickle.dumps(chunk.notes), np.uint8)
        about = np.array([chunk.first, chunk.last, chunk.in_core])
        try:
            with self._as_a_whole(place) as file:
                np.savez(file, **arrays, notes=notes, about=about, seconds=chunk.seconds)
        except OSError as error:
            if not self.trouble:
                log.warning("store: %s cannot be written (%s)", place, error)
            self.trouble = f"{place}: {error}"

    def new_array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Make an array on disk, for values that do not fit into memory.

        All of its space is allocated at once: if the disk became full later, writing into the array
        would kill the process.
        """
        place = self.path / f"{name}.npy"
        try:
            array = np.lib.format.open_memmap(place, mode="w+", dtype=np.float64, shape=shape)
            if hasattr(os, "posix_fallocate"):
                with place.open("r+b") as file:
                    os.posix_fallocate(file.fileno(), 0, place.stat().st_size)
        except OSError as error:
            place.unlink(missing_ok=True)
            size = in_words(8 * math.prod(shape))
            raise OSError(
                error.errno, f"store has no room for {name} of all members, {size} ({error})"
            ) from error
        return array

    def _write(self, place: Path, content: bytes) -> None:
        with self._as_a_whole(place) as file:
            file.write(content)

    @contextlib.contextmanager
    def _as_a_whole(self, place: Path) -> Iterator[Any]:
        """Write a file under a temporary name, and rename it when everything is on disk."""
        handle, name = tempfile.mkstemp(dir=self.path, prefix=".writing-")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


def _read(place: Path) -> Chunk:
    with np.load(place) as file:
        first, last, in_core = (int(v) for v in file["about"])
        notes = pickle.loads(file["notes"].tobytes())
        arrays = {name: file[name] for name in ARRAYS}
        return Chunk(
            first, last, notes=notes, seconds=float(file["seconds"]), in_core=in_core, **arrays
        )
