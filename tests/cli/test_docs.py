"""The commands of docs/reference/command-line.md run as they are written there."""

import re
import shlex

import pytest
from support.helpers import ROOT

PAGE = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
COMMANDS = [
    line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
]


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


def test_messages_are_those_of_the_page(tether):
    file = "tank.py"
    tether.write("def drain(t, y, yp):\n    return [yp[0]]\n", file)
    assert f"    {tether('solve', file)[2]}" in PAGE
    tether.write("def drain(t, y, yp):\n\n\n    1 / 0\ny0, t_span = [1], (0, 1)\n", file)
    assert f"    {tether('solve', file)[2]}" in PAGE
