"""Help, exit codes, errors in one line."""

import importlib
import shutil
import subprocess
import sys
import tomllib

import pytest
from support.command_line import TANK
from support.helpers import ROOT

from tether.cli import main as entry

COMMANDS = ["list", "solve", "analyze", "report", "bench", "studies", "completion"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(tether, command):
    code, out, err = tether(command, "--help")
    assert (code, err) == (0, "")
    assert "examples:" in out
    assert f"  tether {command}" in out


def test_help_names_every_command(tether):
    code, out, _ = tether("--help")
    assert code == 0
    assert all(f"    {command}" in out for command in COMMANDS)
    assert "exit codes" in out


def test_no_command_shows_the_help(tether):
    code, out, _ = tether()
    assert code == 2
    assert "examples:" in out


def test_version(tether):
    import tether as package

    assert tether("--version") == (0, f"tether {package.__version__}\n", "")


@pytest.mark.parametrize(("arguments", "words"), [
    (["solve"], "required"),
    (["solve", "robertson", "--nonsense"], "--nonsense"),
    (["nonsense"], "nonsense"),
    (["solve", "robertso"], "did you mean robertson"),
    (["solve", "qqq"], "tether list"),
    (["solve", "missing.py"], "missing.py"),
    (["solve", "robertson", "--t", "zero"], "0:1000"),
    (["solve", "robertson", "--t", "0:1:2"], "0:1000"),
    (["solve", "robertson", "--t", "0:inf"], "0:1000"),
    (["solve", "robertson", "--y0", "1,a"], "1,a"),
    (["solve", "robertson", "--y0", "1,0"], "3 values"),
    (["solve", "robertson", "--names", "a,b"], "names"),
    (["solve", "robertson", "--rtol", "-1"], "rtol"),
    (["solve", "robertson", "--args", "k"], "NAME=VALUE"),
    (["solve", "robertson", "--args", "k=2"], "k"),
    (["solve", "robertson", "--points", "1"], "--points"),
    (["solve", "robertson", "--points", "5", "--at", "1,2"], "--at"),
    (["solve", "robertson", "--at", "5,1"], "t_eval"),
    (["solve", "robertson", "--max-order", "7"], "max_order"),
    (["solve", "robertson", "--form", "3"], "--form"),
    (["solve", "robertson", "--csv", "nowhere/out.csv"], "nowhere"),
    (["solve", "robertson", "--csv", "."], "folder"),
    (["solve", "robertson", "--npz", "-"], "--npz"),
    (["solve", "robertson", "--nc", "out.npz"], ".nc"),
    (["solve", "robertson", "--csv", "-", "--json", "-"], "standard output"),
    (["solve", "robertson", "--plot", "out.nonsense"], "nonsense"),
    (["report", "robertson"], "--output"),
    (["report", "robertson", "-o", "nowhere/out.html"], "nowhere"),
    (["analyze", "robertson", "--y0", "1"], "3 values"),
    (["bench", "nonsense"], "nonsense"),
    (["studies", "nonsense"], "nonsense"),
    (["completion", "tcsh"], "tcsh"),
])
def test_bad_use_is_one_line_and_exit_code_2(tether, arguments, words):
    if "--plot" in arguments:
        pytest.importorskip("matplotlib")
    code, _, err = tether(*arguments)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1


def test_debug_shows_the_traceback(tether):
    with pytest.raises(Exception, match="did you mean"):
        entry.main(["--debug", "solve", "robertso"])
    with pytest.raises(Exception, match="did you mean"):
        entry.main(["solve", "robertso", "--debug"])


def test_a_run_that_fails_ends_with_1_and_keeps_what_was_computed(tether):
    code, out, err = tether("solve", "rotor", "--max-steps", "3", "--csv", "out.csv")
    assert code == 1
    assert out.startswith("FAILED")
    assert "limit of 3 steps" in err
    assert err.count("\n") == 1
    assert len((tether.folder / "out.csv").read_text().splitlines()) == 1 + 4


def test_a_singular_system_ends_analyze_with_1(tether):
    file = tether.write("def fun(t, y, yp):\n    return [yp[0] - y[0]] * 2\ny0 = [1, 1]\n")
    code, out, _ = tether("analyze", file)
    assert code == 1
    assert "singular" in out


def test_interruption_delivers_the_solution_so_far(tether):
    file = tether.write(
        "import time\n"
        "def fun(t, y, yp):\n"
        "    if t > 1:\n"
        "        raise KeyboardInterrupt\n"
        "    return [yp[0] + y[0]]\n"
        "y0, t_span = [1.0], (0, 2)\n"
    )
    code, _, err = tether("solve", file, "--trace", "never", "--csv", "out.csv")
    assert code == 130
    assert "interrupted" in err
    assert len((tether.folder / "out.csv").read_text().splitlines()) > 5


def test_warnings_are_one_line(tether):
    file = tether.write(TANK)
    code, _, err = tether("solve", file, "--y0", "1,5")
    assert code == 0
    assert err.startswith("tether: warning: y0 does not satisfy")
    assert err.count("\n") == 1


def test_as_a_process(tether):
    command = [sys.executable, "-m", "tether", "solve", "rotor", "-q", "--csv", "-"]
    done = subprocess.run([*command, "--max-steps", "3"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("tether: the run failed")
    assert len(done.stdout.splitlines()) == 1 + 4


def test_the_command_that_is_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, function = project["scripts"]["tether"].split(":")
    assert getattr(importlib.import_module(module), function) is entry.main


@pytest.mark.skipif(shutil.which("head") is None, reason="needs a reader that leaves")
def test_a_reader_that_leaves_is_no_error(tether):
    done = subprocess.run(
        f"{sys.executable} -m tether solve trivial -q --csv - | head -n 1",
        shell=True, capture_output=True, text=True,
    )
    assert done.stderr == ""
    assert done.stdout.startswith("t,")


def test_help_imports_neither_gallery_nor_matplotlib(tether):
    text = ("import sys\nfrom tether.cli.main import main\nmain(['--help'])\n"
            "assert not {'tether.gallery', 'matplotlib', 'tether.cli.solve'} & set(sys.modules)\n")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_bar_is_shown_on_a_terminal_only(tether, monkeypatch):
    assert tether("solve", "rotor")[2] == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "100.0%" in tether("solve", "rotor")[2]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert tether("solve", "rotor", "--quiet")[2] == ""
