"""The commands in the documentation run as they are written there."""

import re
import shlex

import pytest
from support.helpers import ROOT

PAGE = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")


def in_blocks(text):
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


def in_text(text):
    return re.findall(r"`(tether (?:list|(?:solve|analyze|report) [a-z][^`\n]*))`", text)


COMMANDS = in_blocks(PAGE)
ELSEWHERE = sorted({
    command
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for text in [page.read_text(encoding="utf-8")]
    for command in in_blocks(text) + in_text(text)
    if page.name != "command-line.md" and command.startswith("tether ")
})  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(tether, command):
    (tank,) = re.findall(r"^```python\n(# tank.py\n.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    tether.write(tank, "tank.py")
    if "--plot" in command:
        pytest.importorskip("matplotlib")
    program, *arguments = shlex.split(command)
    assert program == "tether"
    code, out, err = tether(*arguments)
    assert (code, err) == (0, "")
    assert out
    for name in re.findall(r"\b[\w-]+\.(?:csv|json|npz|nc|html|png)\b", command):
        assert (tether.folder / name).stat().st_size > 0


@pytest.mark.parametrize("command", ELSEWHERE)
def test_commands_of_other_pages_run(tether, command):
    if "--plot" in command:
        pytest.importorskip("matplotlib")
    code, out, err = tether(*shlex.split(command)[1:])
    assert code == 0, err
    assert out


def test_messages_are_those_of_the_page(tether):
    file = "tank.py"
    tether.write("def drain(t, y, yp):\n    return [yp[0]]\n", file)
    assert f"    {tether('solve', file)[2]}" in PAGE
    tether.write("def drain(t, y, yp):\n\n\n    1 / 0\ny0, t_span = [1], (0, 1)\n", file)
    assert f"    {tether('solve', file)[2]}" in PAGE
