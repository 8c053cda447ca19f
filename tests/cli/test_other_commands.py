"""list, bench, studies, completion."""

import json
import shutil
import subprocess

import pytest

from tether import gallery
from tether.cli.completion import script
from tether.cli.parser import SHELLS
from tether.cli.studies import titles


def test_list(tether):
    code, out, _ = tether("list")
    assert code == 0
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(gallery.names())
    assert lines[1].split()[1:3] == ["3", "1"]
    assert tether("list", "--names")[1].split() == list(gallery.names())


def test_bench(tether):
    code, out, _ = tether("bench", "rotor", "robertson", "--rounds", 2)
    assert code == 0
    head, first, second, total = out.splitlines()
    assert head.split()[:3] == ["name", "n", "steps"]
    assert (first.split()[0], second.split()[0]) == ("rotor", "robertson")
    assert total.startswith("2 problems")


def test_bench_as_json(tether):
    code, out, _ = tether("bench", "rotor", "--rounds", 1, "--rtol", "1e-8", "--json", "-")
    (row,) = json.loads(out)
    assert code == 0
    assert row["digits"] > 5
    assert row["steps"] > 0
    assert row["warm_ms"] > 0


def test_studies_are_listed(tether):
    code, out, _ = tether("studies")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(titles())
    assert all(titles().values())


@pytest.mark.parametrize("name", titles())
def test_every_study_takes_arguments(tether, name):
    code, out, _ = tether("studies", name, "--help")
    assert code == 0
    assert "usage" in out
    assert tether("studies", name, "--nonsense")[0] == 2


def test_a_study_runs(tether):
    code, out, _ = tether("studies", "nilpotency")
    assert code == 0
    assert "|" in out


def completed(words):
    """Return what bash offers after these words."""
    count = len(words) - 1
    text = script("bash") + (
        f"\nCOMP_WORDS=({' '.join(f'{word!r}' for word in words)})\nCOMP_CWORD={count}\n"
        '_tether\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tether):
    tether.write("", "tank.py")
    tether.write("", "notes.txt")
    assert completed(["tether", "so"]) == ["solve"]
    assert completed(["tether", "solve", "robe"]) == ["robertson"]
    assert completed(["tether", "solve", "ta"]) == ["tank.py"]
    assert completed(["tether", "solve", "robertson", "--max-st"]) == ["--max-step", "--max-steps"]
    assert completed(["tether", "solve", "robertson", "--form", ""]) == ["auto", "given", "2"]
    assert completed(["tether", "solve", "robertson", "--csv", "no"]) == ["notes.txt"]
    assert completed(["tether", "studies", "ord"]) == ["orders"]
    assert completed(["tether", "completion", ""]) == [*SHELLS, "-h", "--help", "--debug"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(("line", "offered"), [
    ("tether so", ["solve"]), ("tether solve robe", ["robertson"]),
    ("tether solve robertson --form ", ["2", "auto", "given"]),
    ("tether completion ", ["bash", "fish", "zsh"]),
])
def test_fish_completes(tether, line, offered):
    text = script("fish") + f"\ncomplete -C '{line}'\n"
    done = subprocess.run(["fish", "--no-config", "-c", text], capture_output=True, text=True)
    assert done.stderr == ""
    assert sorted(word.split("\t")[0] for word in done.stdout.splitlines()) == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_reads_its_script(tether):
    text = "autoload -Uz compinit; compinit -D -u\n" + script("zsh") + "\nprint $_comps[tether]\n"
    done = subprocess.run(["zsh", "-f", "-c", text], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("_tether", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_are_printed(tether, shell):
    code, out, _ = tether("completion", shell)
    assert code == 0
    for word in ("solve", "robertson", "max-steps", "orders"):
        assert word in out
