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
