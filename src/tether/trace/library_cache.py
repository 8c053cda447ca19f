"""Compiled libraries kept on disk. Loading one runs its code, so it must be the user's own.

Folder, subfolder and file must belong to the user and be writable by nobody else. They are opened
without following links and checked by their open descriptors, so that the library which is loaded
is the one that was checked, whatever happens to the path in the meantime.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import re
import shutil
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tempfile

__all__ = ["cache_folder", "digest", "load", "workplace"]

KEY_PATTERN = re.compile("[0-9a-f]{32}")
MOST_KEPT = 200             # libraries in the cache; the oldest go

_HAS_OWNERS = hasattr(os, "geteuid")                       # False on Windows
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_DESCRIPTORS = Path("/proc/self/fd")                       # Linux: paths of open descriptors


class _Unsafe(Exception):  # noqa: N818
    """Another user could have written a file; the message says why."""


def cache_folder() -> Path:
    """Folder of the compiled programs: TETHER_CACHE, else in the user's cache, else temporary."""
    folder = wanted_folder()
    try:
        _refuse_link(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened_folder(folder):
            pass
    except _Unsafe as reason:
        _warn(str(folder), str(reason))
        return private_folder()
    except OSError:
        return private_folder()
    return folder if os.access(folder, os.W_OK | os.X_OK) else private_folder()


def wanted_folder() -> Path:
    """Folder that the environment names; it need not exist."""
    if named := os.environ.get("TETHER_CACHE"):
        return Path(named)
    above = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(above) / "tether"


@functools.cache
def private_folder() -> Path:
    """Make a temporary folder that exists as long as this process."""
    import tempfile  # late, to save time

    keeper = tempfile.TemporaryDirectory(prefix="tether-", ignore_cleanup_errors=True)
    _temporary_folders.append(keeper)
    return Path(keeper.name)


_temporary_folders: list[tempfile.TemporaryDirectory] = []


@functools.cache
def _warn(place: str, reason: str) -> None:
    """Warn once that the cache is not used, and say why."""
    warnings.warn(
        f"compiled programs are not kept in {place}: {reason}, so that somebody else could have "
        "put one there. They go to a temporary folder instead. Make the folder yours alone "
        "(chmod go-w), or name another one in the environment variable TETHER_CACHE.",
        RuntimeWarning, stacklevel=2,
    )


def load(key: str) -> tuple[ctypes.CDLL, Path] | None:
    """Load a library from the cache; no folder is made if there is no cache yet."""
    if os.path.lexists(wanted_folder()):
        return _from_folder(cache_folder(), key)
    return _from_folder(private_folder(), key) if _temporary_folders else None


def digest(content: bytes) -> str:
    """Digest of a library's content, which serves as its name."""
    return hashlib.sha256(content).hexdigest()[:32]


@contextlib.contextmanager
def workplace(key: str) -> Iterator[tuple[str, Callable[[str], None]]]:
    """Yield a folder to build a library in, and a function that moves it into the cache."""
    cache = cache_folder()

    def keep(library: str) -> None:
        os.chmod(library, 0o600)       # the umask may have let the compiler allow more
        folder = cache / key
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = folder / f"{digest(Path(library).read_bytes())}.so"
        try:
            os.replace(library, kept)
        except PermissionError:        # Windows: another process has loaded the same one
            if not kept.exists():
                raise
        _prune(cache)

    import tempfile  # late, to save time

    with tempfile.TemporaryDirectory(prefix="build-", dir=cache) as work:
        yield work, keep


def _from_folder(cache: Path, key: str) -> tuple[ctypes.CDLL, Path] | None:
    """Load a library; a file whose content does not match its name is deleted.

    A library is named by a digest of its content, so that a file that was only partly written, or
    changed since, is never loaded.
    """
    folder = cache / key
    try:
        with _opened_folder(cache) as above, _opened_folder(key, above, folder) as here:
            for path in sorted(folder.glob("*.so")):
                library = _load_file(path, here)
                if library is not None:
                    return library, path
                with contextlib.suppress(OSError):
                    path.unlink()
    except _Unsafe as reason:
        _warn(str(folder), str(reason))
        with contextlib.suppress(OSError):     # so that the next one gets a new folder
            folder.rename(cache / f"refused-{os.urandom(8).hex()}")
    except OSError:
        pass
    return None


def _load_file(path: Path, folder: int | None) -> ctypes.CDLL | None:
    """Load a file of an open folder if its content matches its name."""
    try:
        with _opened(path.name if folder is not None else path, _FILE, folder, path) as file:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return None
            with open(file, "rb", closefd=False) as content:
                if digest(content.read()) != path.stem:
                    return None
            # A descriptor may be reused for another folder, and the loader identifies libraries
            # by their paths. This is safe because the digest is part of the path.
            by_descriptor = _DESCRIPTORS / str(folder) / path.name
            return ctypes.CDLL(str(by_descriptor if by_descriptor.exists() else path))
    except _Unsafe as reason:
        _warn(str(path), str(reason))
    except OSError:
        pass
    return None


@contextlib.contextmanager
def _opened_folder(
    path: Path | str, above: int | None = None, whole: Path | None = None
) -> Iterator[int | None]:
    """Open a folder, within another that is open; None where folders cannot be opened."""
    if os.open not in os.supports_dir_fd:
        yield None
        return
    with _opened(path, _FOLDER, above, whole or Path(path)) as descriptor:
        yield descriptor


@contextlib.contextmanager
def _opened(path: Path | str, flags: int, above: int | None, whole: Path) -> Iterator[int]:
    """Open a file or folder that only the user can write to.

    Raises
    ------
    _Unsafe
        It is a link, belongs to somebody else, or others may write to it.
    """
    _refuse_link(whole)
    descriptor = os.open(path, flags, dir_fd=above)
    try:
        if _HAS_OWNERS:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid():
                raise _Unsafe(f"{whole} belongs to another user")
            if found.st_mode & _WRITABLE_BY_OTHERS:
                raise _Unsafe(f"others may write to {whole}")
        yield descriptor
    finally:
        os.close(descriptor)


def _refuse_link(path: Path) -> None:
    """Raise `_Unsafe` for a link, since opening it would only give an error number."""
    if path.is_symlink():
        raise _Unsafe(f"{path} is a link")


def _prune(cache: Path) -> None:
    """Remove the oldest libraries when there are too many."""
    with contextlib.suppress(OSError):
        folders = sorted(
            (entry for entry in cache.iterdir() if KEY_PATTERN.fullmatch(entry.name)),
            key=lambda entry: entry.stat().st_mtime,
        )
        for old in folders[: max(0, len(folders) - MOST_KEPT)]:
            shutil.rmtree(old, ignore_errors=True)
