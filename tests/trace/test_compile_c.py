"""Programs compiled to C, and the cache of the libraries."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.helpers import start_python
from support.programs import (
    EXACT,
    SPLIT,
    assemble,
    needs_compiler,
    random_program,
    reference,
    split_value,
)

from tether.trace import compile_c, library_cache
from tether.trace import opcodes as op
from tether.trace.backend import prepare
from tether.trace.compile_c import NotCompiled, compile_program, find_compiler

# --- random programs ------------------------------------------------------------------------


@needs_compiler
@settings(deadline=None, max_examples=16,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(0, 200), piece=st.sampled_from([7, 250]))
def test_random_programs_in_c(seed, size, piece):
    rng = np.random.default_rng(seed)
    program = random_program(rng, size, [*EXACT, op.POWI, op.TABLE, op.MUL, op.ADD, op.MUL, op.SUB])
    args = rng.standard_normal(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_c, "PIECE", piece)
        made = prepare(program, 3, ([0, 1], [0, 2]), ([2], [1]), backend="c")
    assert made.name == "c", made.reason
    runner = made.new(args)
    for _ in range(3):
        t, y, yp = rng.standard_normal(), rng.standard_normal(3), rng.standard_normal(3)
        expected = reference(program, t, y, yp, args)
        fy, fyp = np.zeros(9), np.zeros(9)
        runner.entries_into(t, y, yp, fy, fyp)
        np.testing.assert_array_equal([fy[0], fy[7], fyp[5]], expected[3:])
        np.testing.assert_array_equal(runner.values(t, y, yp), expected[:3])
        args = rng.standard_normal(2)
        runner.set_args(args)


# --- the cache of compiled programs -----------------------------------------------------------


def libraries(cache):
    return sorted(cache.glob("*/*.so"))


@needs_compiler
def test_a_program_is_compiled_once(empty_cache, monkeypatch):
    with pytest.raises(NotCompiled, match="not in the cache"):
        compile_program(SPLIT, only_cached=True)
    first = compile_program(SPLIT)
    assert libraries(empty_cache) == [first.path]
    monkeypatch.setattr(subprocess, "run", None)
    assert compile_program(SPLIT).path == first.path
    assert compile_program(SPLIT, only_cached=True).path == first.path


@needs_compiler
def test_a_damaged_library_is_made_anew(empty_cache):
    path = compile_program(SPLIT).path
    good = path.read_bytes()
    path.unlink()                                         # the loaded one stays as it is
    for damaged in (b"", b"not a library", good[: len(good) // 2], good[:-1] + b"x"):
        path.write_bytes(damaged)
        made = prepare(SPLIT, backend="c")
        assert made.name == "c"
        assert made.new([3.0]).values(1.0, [0.5], [0.0])[0] == split_value(1.0, 0.5, 3.0)
        assert libraries(empty_cache) == [path]
        assert path.read_bytes() == good
        path.unlink()


@needs_compiler
def test_processes_may_compile_the_same_program_at_once(empty_cache):
    code = """
from support.programs import SPLIT, prepare, split_value
made = prepare(SPLIT, backend="c")
assert made.name == "c", made.reason
assert made.new([3.0]).values(1.0, [0.5], [0.0])[0] == split_value(1.0, 0.5, 3.0)
"""
    processes = [start_python(code) for _ in range(6)]
    for process in processes:
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
    assert len(libraries(empty_cache)) == 1
    assert [entry for entry in empty_cache.iterdir() if entry.name.startswith("build")] == []


@needs_compiler
def test_an_impossible_cache_is_replaced_by_a_temporary_one(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TETHER_CACHE", str(tmp_path / "file" / "below"))
    made = prepare(SPLIT, backend="c")
    assert made.name == "c", made.reason
    assert str(compile_program(SPLIT).path).startswith(str(library_cache.private_folder()))


@needs_compiler
def test_old_libraries_go_and_nothing_else(empty_cache, monkeypatch):
    monkeypatch.setattr(library_cache, "MOST_KEPT", 2)
    empty_cache.mkdir()
    (empty_cache / "notes").mkdir()
    for constant in range(4):
        program = assemble(1, 0, [float(constant)], [(op.ADD, 0, 2)], [4])
        newest = compile_program(program).path
        os.utime(newest.parent, (constant, constant))
    assert (empty_cache / "notes").exists()
    assert len(libraries(empty_cache)) == 2
    assert newest.exists()


def test_the_cache_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("TETHER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert library_cache.cache_folder() == tmp_path / "tether"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert library_cache.cache_folder() == tmp_path / "home" / ".cache" / "tether"


def test_a_short_run_is_not_worth_a_compiler():
    program = random_program(np.random.default_rng(0), 300, EXACT)
    assert 2e5 < compile_c.worth_compiling_from(program) < 1e7


@needs_compiler
@pytest.mark.skipif(sys.platform == "win32", reason="scripts are no programs there")
def test_another_compiler_or_translation_is_another_library(empty_cache, monkeypatch, tmp_path):
    first = compile_program(SPLIT).path
    monkeypatch.setattr(compile_c, "translator_digest", lambda: "another")
    second = compile_program(SPLIT).path
    other = tmp_path / "cc"
    other.write_text(f'#!/bin/sh\nexec {find_compiler()} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("CC", str(other))
    assert len({first, second, compile_program(SPLIT).path}) == 3
