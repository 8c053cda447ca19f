"""Files for the command line, and a way to run it."""

from tether.cli.main import main

TANK = """\
def drain(t, y, yp, k, g=2.0):
    level, flow = y
    return [yp[0] + flow, flow - k * g * level]

y0 = [1.0, 1.0]
t_span = (0, 2)
args = (0.5,)
"""

# A ball that bounces, two capacitors that are connected, and names that try to break out of a page.
EVIL = "</script><script>alert(1)</script>"

EVIL_BALL = f'''"""A ball {EVIL}."""
title = "<img src=x onerror=alert(1)>"

def fun(t, y, yp, e):
    height, speed, v1, v2, i = y
    return [yp[0] - speed, yp[1] + 9.81, yp[2] + i, 4 * yp[3] - i, v1 - v2 if t > 1 else i]

def ground(t, y, yp, e):
    return y[0]

ground.direction = -1
ground.apply = lambda t, y, yp, e: [0.0, -e * y[1], *y[2:]]
ground.__name__ = "{EVIL}"
events, args, y0, t_span = [ground], {{"e": 0.8}}, [1, 0, 10, 0, 0], (0, 2)
names = ["{EVIL}", "speed\\"'>", "v1", "v2", "--><b>i"]
units = ["m", "m/s", "V", "V", "</td>A"]
'''


class CommandLine:
    """Runs commands in a folder of their own and keeps what they print."""

    def __init__(self, folder, capsys):
        self.folder, self.capsys = folder, capsys

    def write(self, text, name="model.py"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def __call__(self, *arguments):
        """Return exit code, standard output and standard error."""
        code = main([str(argument) for argument in arguments])
        out, err = self.capsys.readouterr()
        return code, out, err
