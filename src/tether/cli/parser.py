"""The parser of the command line: commands, options, help with examples."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from tether.cli import values

__all__ = ["SHELLS", "build_parser"]


class Parser(argparse.ArgumentParser):
    """Reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with the code for bad use."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


SHELLS = ("bash", "zsh", "fish")
TARGET = "a problem of the gallery, or a Python file and, after a colon, the function in it"

FILE_HELP = """\
A file defines the residual, fun(t, y, yp) or the only function with these parameters, and may
define under these names: y0, yp0, t_span, args, names, units, title, events, t_eval, rtol, atol,
constraints, invariants, t_breaks, equation_names. Options on the command line override them.
"""

EXIT_HELP = """\
exit codes:
  0  success
  1  the run failed, or the equations do not determine one solution
  2  the command, the file or a value is wrong
"""

EXAMPLES = {
    "tether": """\
examples:
  tether list
  tether solve pend-i3 --t 0:100 --rtol 1e-8 --csv swing.csv
  tether solve tank.py:drain --y0 1,0.5 --args k=2 --plot tank.png
  tether analyze pend-i3
  tether report pend-i3 -o report.html
  tether solve --help
""",
    "list": """\
examples:
  tether list
  tether list --names
""",
    "solve": """\
examples:
  tether solve robertson
  tether solve pend-i3 --t 0:100 --rtol 1e-8 --plot swing.png
  tether solve transamp --points 500 --csv voltages.csv --nc voltages.nc
  tether solve heat1d --args m=20
  tether solve tank.py
  tether solve tank.py:drain --t 0:10 --y0 1,0.5 --args k=2,g=9.81
  tether solve tank.py --at 1,2,5 --csv - --quiet | cut -d, -f1,2
""",
    "analyze": """\
examples:
  tether analyze andrews-i3
  tether analyze tank.py:drain --y0 1,0.5 --args k=2
  tether analyze pend-i3 --plot incidence.png
""",
    "report": """\
examples:
  tether report pend-i3 -o report.html
  tether report tank.py:drain --t 0:10 --y0 1,0.5 -o tank.html
""",
    "bench": """\
examples:
  tether bench
  tether bench robertson akzo --rounds 20 --rtol 1e-8
  tether bench --json - > bench.json
""",
    "studies": """\
examples:
  tether studies
  tether studies orders
  tether studies steep --full --plot steep.png
""",
    "completion": """\
examples:
  tether completion bash > ~/.local/share/bash-completion/completions/tether
  tether completion zsh > ~/.zfunc/_tether      (with fpath+=~/.zfunc in ~/.zshrc)
  tether completion fish > ~/.config/fish/completions/tether.fish
""",
}


def build_parser() -> argparse.ArgumentParser:
    """Make the parser, without importing any module that computes."""
    parser = Parser(
        prog="tether", description="Solve differential-algebraic equations F(t, y, y') = 0.",
        epilog=f"{EXAMPLES['tether']}\n{EXIT_HELP}", allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    one = _command(commands, "list", "list the problems of the gallery")
    one.add_argument("--names", action="store_true", help="names only")

    one = _command(commands, "solve", "solve equations and write the result", FILE_HELP)
    _add_equations(one)
    _add_method(one)
    out = one.add_argument_group("output")
    _add_times(out)
    out.add_argument("--plot", metavar="FILE", help="draw the solution (.png, .svg, .pdf)")
    out.add_argument("--csv", metavar="FILE", help="t and the unknowns; - for standard output")
    out.add_argument("--json", metavar="FILE",
                     help="solution, events and statistics; - for standard output")
    for kind, title in (("npz", "NumPy"), ("nc", "NetCDF"), ("h5", "HDF5; needs h5py")):
        out.add_argument(f"--{kind}", metavar="FILE", help=f"everything, for tether.load ({title})")

    one = _command(commands, "analyze", "say what kind of DAE it is: index, hidden constraints",
                   FILE_HELP)
    _add_equations(one)
    one.add_argument("--plot", metavar="FILE", help="draw which unknowns occur in which equations")

    one = _command(commands, "report", "solve and write all about it into one HTML page", FILE_HELP)
    _add_equations(one)
    _add_method(one)
    one.add_argument("-o", "--output", metavar="FILE", required=True,
                     help="the page; - for standard output")

    one = _command(commands, "bench", "measure the problems of the gallery on this machine")
    one.add_argument("problems", metavar="NAME", nargs="*", help="all of them when left out")
    one.add_argument("--rounds", type=values.count, default=5, metavar="N",
                     help="how often each is solved after the first time (5)")
    one.add_argument("--rtol", type=float, default=1e-6, help="relative tolerance (1e-6)")
    one.add_argument("--json", metavar="FILE", help="the figures; - for standard output")

    one = _command(commands, "studies", "list or run the papers retold")
    one.add_argument("study", metavar="NAME", nargs="?", help="the one to run")
    one.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER,
                     help="its arguments; NAME --help lists them")

    one = _command(commands, "completion", "print the completion script of a shell")
    one.add_argument("shell", choices=SHELLS)
    return parser


def _command(commands: Any, name: str, title: str, more: str = "") -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=title, description=f"{title[0].upper()}{title[1:]}.\n\n{more}".rstrip(),
        epilog=EXAMPLES[name], formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    # --debug may also follow the command; with SUPPRESS, one before it is not overwritten
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS,
                        help="show the traceback of an error")
    return parser


def _add_equations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="NAME | FILE.py[:function]", help=TARGET)
    group = parser.add_argument_group("equations")
    group.add_argument("--t", type=values.span, metavar="START:END", help="interval of time")
    group.add_argument("--y0", type=values.numbers, metavar="Y,Y,...", help="starting values")
    group.add_argument("--yp0", type=values.numbers, metavar="Y,Y,...",
                       help="starting derivatives; computed when left out")
    group.add_argument("--args", type=values.assignments, action="append", metavar="NAME=VALUE",
                       default=[], help="further parameters of the function, or parameters of the "
                       "problem; separate several by commas")
    group.add_argument("--names", type=values.words, metavar="NAME,...",
                       help="names of the unknowns")
    group.add_argument("--rtol", type=values.tolerance, help="relative tolerance (1e-6)")
    group.add_argument("--atol", type=values.tolerance,
                       help="absolute tolerance (1e-9), or one for every unknown")


def _add_method(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("run")
    group.add_argument("--form", type=values.form, choices=("auto", "given", 2),
                       help="reduce a high index to 1, leave it as written, or reduce it to 2")
    group.add_argument("--trace", choices=("auto", "never", "always"),
                       help="run expressions instead of calling the function")
    group.add_argument("--start", choices=("auto", "quiet", "assume", "check"),
                       help="what to do with inconsistent starting values")
    group.add_argument("--first-step", type=float, metavar="H", help="size of the first step")
    group.add_argument("--max-step", type=float, metavar="H", help="largest size of a step")
    group.add_argument("--max-order", type=values.count, metavar="K", help="highest order, 1 to 6")
    group.add_argument("--max-steps", type=values.count, metavar="N", help="limit of steps")
    group.add_argument("--max-seconds", type=float, metavar="S", help="limit of time")
    group.add_argument("-q", "--quiet", action="store_true",
                       help="neither a summary nor a progress bar")


def _add_times(group: argparse._ArgumentGroup) -> None:
    times = group.add_mutually_exclusive_group()
    times.add_argument("--points", type=values.count, metavar="N",
                       help="number of output times, equally spaced; every step when left out")
    times.add_argument("--at", type=values.numbers, metavar="T,T,...", help="output times")
