"""What is loaded from the cache of compiled programs is run: it must be the user's own."""

import contextlib
import os
import subprocess
import sys
import warnings

import pytest

from tether.trace import library_cache, trace
from tether.trace.backend import prepare
from tether.trace.compile_c import compile_program, find_compiler

pytestmark = [
    pytest.mark.skipif(find_compiler() is None, reason="no C compiler"),
    pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here"),
]
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("TETHER_CACHE", str(folder))
    library_cache._warn.cache_clear()
    yield folder
    library_cache._warn.cache_clear()


def build(k=2.0):
    """Compile, or load, a small program; where its library is."""
    program = trace(lambda t, y, yp: [yp[0] + k * y[0]], 1).program()
    made = prepare(program, backend="c")
    assert made.name == "c", made.reason
    assert made.new().values(0.0, [3.0], [1.0])[0] == 1.0 + 3.0 * k
    return compile_program(program, only_cached=True).path


def is_temporary(path):
    return path.is_relative_to(library_cache.private_folder())


def planted(path):
    """Replace a library by one that tells when it is run, under the name of its content."""
    mark = path.parent.parent / "it-was-run"
    source = path.with_suffix(".c")
    source.write_text(f'#include <stdio.h>\n__attribute__((constructor)) void f(void)'
                      f'{{ fclose(fopen("{mark}", "w")); }}\n')
    subprocess.run([find_compiler(), "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
    name = library_cache.digest(path.read_bytes())
    path.rename(path.with_name(f"{name}.so"))
    source.unlink()
    return path.with_name(f"{name}.so"), mark


def test_what_is_kept_is_the_users_alone(cache):
    before = os.umask(0)                       # the compiler's file would be for everybody
    try:
        path = build()
    finally:
        os.umask(before)
    assert path.is_relative_to(cache)
    for part in (path, path.parent, cache):
        assert part.stat().st_mode & 0o077 == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert build() == path


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720, 0o702])
def test_a_folder_that_others_may_write_to_is_left_alone(cache, mode):
    cache.mkdir()
    cache.chmod(mode)
    with pytest.warns(RuntimeWarning, match="others may write"):
        assert is_temporary(build())
    with warnings.catch_warnings():
        warnings.simplefilter("error")         # it is said once
        assert is_temporary(build(3.0))
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("part", ["subfolder", "file"])
@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_planted_library_is_not_run(cache, part, mode):
    path, mark = planted(build())
    {"subfolder": path.parent, "file": path}[part].chmod(mode)
    with pytest.warns(RuntimeWarning, match="others may write"):
        made = build()
    assert made.is_relative_to(cache)
    assert made != path
    assert not mark.exists()
    assert not path.exists()                   # nor is it looked at again


@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
@pytest.mark.parametrize("part", ["folder", "subfolder", "file"])
def test_what_belongs_to_somebody_else_is_not_run(cache, part):
    path, mark = planted(build())
    stranger = {"folder": cache, "subfolder": path.parent, "file": path}[part]
    os.chown(stranger, 12345, 12345)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        made = build()
    assert is_temporary(made) == (part == "folder")
    assert not mark.exists()


@pytest.mark.parametrize("part", ["folder", "subfolder", "file"])
def test_links_are_not_followed(cache, part, tmp_path):
    path, mark = planted(build())
    original = {"folder": cache, "subfolder": path.parent, "file": path}[part]
    elsewhere = tmp_path / "elsewhere"
    original.rename(elsewhere)
    original.symlink_to(elsewhere)
    with pytest.warns(RuntimeWarning, match="is a link"):
        made = build()
    assert is_temporary(made) == (part == "folder")
    assert not mark.exists()
    assert elsewhere.exists()


def test_what_is_no_file_is_not_opened(cache):
    path = build()
    path.unlink()
    os.mkfifo(path, 0o600)                     # reading would wait for ever
    assert build() == path
    assert path.is_file()


@pytest.mark.skipif(sys.platform != "linux", reason="needs descriptors with paths")
def test_what_was_checked_is_what_is_loaded(cache, monkeypatch, tmp_path):
    """A folder above that somebody else may write to: the path is exchanged at the last moment."""
    path = build()
    load, names = library_cache.ctypes.CDLL, []

    def exchanged(name):
        names.append(name)
        cache.rename(tmp_path / "moved")
        cache.mkdir()
        return load(name)

    monkeypatch.setattr(library_cache.ctypes, "CDLL", exchanged)
    found = library_cache.load(path.parent.name)
    assert found is not None
    assert names[0].startswith("/proc/self/fd/")


def test_descriptors_are_closed(cache):
    build()
    with contextlib.suppress(FileNotFoundError):
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            build()
        assert len(os.listdir("/proc/self/fd")) == before
