"""Circuits from text, in the style of SPICE."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from tether.models.circuits import Circuit
from tether.models.sources import Dc, Pulse, Pwl, Sin

__all__ = ["read_netlist"]

POWERS = {"f": -15, "p": -12, "n": -9, "u": -6, "m": -3, "k": 3, "meg": 6, "g": 9, "t": 12}
NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(meg|[fpnumkgt])?[a-z]*\Z")
WORD = re.compile(r"[^\s,=()]+|=")


def read_netlist(text: str) -> Circuit:
    """Read a circuit: one element per line; the first letter of its name is its type.

    ==== ========================================================================================
    R    ``R1 a b 1k``, resistor; C and L likewise, with ``1u``, ``10m`` and so on
    V    ``V1 a b 5``, ``DC 5``, ``SIN(0 1 50)``, ``PULSE(0 5 1u 1n 1n 5u 10u)``,
         ``PWL(0 0 1m 5)``; I likewise, with the current from a through the source to b
    D    ``D1 anode cathode IS=1e-14 N=1 CJ=0``, with the capacity of its junction
    Q    ``Q1 collector base emitter NPN IS=1e-16 BF=100 BR=1``, or PNP
    M    ``M1 drain gate source NMOS VTO=1 KP=2e-5 LAMBDA=0``, or PMOS, with a positive VTO as well
    E    ``E1 a b c d 10``, a voltage source of 10 times the voltage between c and d; G, a current
    O    ``O1 out in+ in-``, an ideal operational amplifier; ``GAIN=1e5`` for a finite gain
    S    ``S1 a b c d VT=2.5 RON=1 ROFF=1e9``, closed while the voltage between c and d is above VT
    ==== ========================================================================================

    Lines that begin with ``*`` or ``.`` are ignored, and so is text after a ``;``. A line that
    begins with ``+`` continues the one before. Upper and lower case are the same except in names of
    nodes and elements. The node ``0`` is ground.

    Parameters
    ----------
    text : str
        The netlist.

    Examples
    --------
    >>> from tether import solve_dae
    >>> from tether.models import read_netlist
    >>> circuit = read_netlist('''
    ... V1 in 0 SIN(0 1 1k)
    ... R1 in out 1k
    ... C1 out 0 1u
    ... ''')
    >>> equations = circuit.nodal()
    >>> sol = solve_dae(equations.fun, (0, 1e-3), equations.y0, names=equations.names)
    >>> round(float(sol["v(out)"][-1]), 4)
    -0.0981
    """
    circuit = Circuit()
    for line in _lines(text):
        name, *words = WORD.findall(line)
        read = ELEMENTS.get(name[0].lower())
        if read is None:
            raise ValueError(f"{line!r}: there is no element that begins with {name[0]!r}")
        try:
            read(circuit, name, words)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{line!r} cannot be read: {error}") from error
    return circuit


def read_number(word: str) -> float:
    """Read a number with a SPICE suffix.

    Examples
    --------
    >>> from tether.models.netlist import read_number
    >>> read_number("4.7k"), read_number("10uF"), read_number("1meg")
    (4700.0, 1e-05, 1000000.0)
    """
    found = NUMBER.match(word.lower())
    if found is None:
        raise ValueError(f"{word!r} is not a number")
    return float(Decimal(found[1]).scaleb(POWERS.get(found[2] or "", 0)))


def _lines(text: str) -> list[str]:
    found: list[str] = []
    for raw in text.splitlines():
        line = raw.partition(";")[0].strip()
        if not line or line[0] in "*.":
            continue
        if line[0] == "+" and found:
            found[-1] += " " + line[1:]
        else:
            found.append(line)
    return found


def _settings(words: list[str], known: tuple[str, ...]) -> dict[str, float]:
    """Read ``NAME=value`` pairs."""
    found = {}
    while words:
        if len(words) < 3 or words[1] != "=":
            raise ValueError(f"expected NAME=value, got {words[0]!r}")
        name = words[0].lower()
        if name not in known:
            raise ValueError(f"{words[0]!r} is not one of {', '.join(known).upper()}")
        found[name] = read_number(words[2])
        words = words[3:]
    return found


def _wave(words: list[str]) -> Any:
    kind = words[0].lower()
    if kind not in ("dc", "sin", "pulse", "pwl"):
        _no_more(words[1:])
        return Dc(read_number(words[0]))
    numbers = [read_number(word) for word in words[1:]]
    if kind == "pwl":
        if len(numbers) % 2:
            raise ValueError("PWL needs pairs of times and values")
        return Pwl(numbers[::2], numbers[1::2])
    least, most = {"dc": (1, 1), "sin": (3, 5), "pulse": (2, 7)}[kind]
    if not least <= len(numbers) <= most:
        raise ValueError(f"{kind.upper()} takes {least} to {most} numbers, got {len(numbers)}")
    makers: dict[str, Callable[..., Any]] = {"dc": Dc, "sin": Sin, "pulse": Pulse}
    return makers[kind](*numbers)


def _no_more(words: list[str]) -> None:
    if words:
        raise ValueError(f"unexpected {' '.join(words)!r} at the end")


def _two_terminal(method: str) -> Callable[[Circuit, str, list[str]], None]:
    def read(circuit: Circuit, name: str, words: list[str]) -> None:
        _no_more(words[3:])
        getattr(circuit, method)(name, words[0], words[1], read_number(words[2]))

    return read


def _source(method: str) -> Callable[[Circuit, str, list[str]], None]:
    def read(circuit: Circuit, name: str, words: list[str]) -> None:
        getattr(circuit, method)(name, words[0], words[1], _wave(words[2:]))

    return read


def _controlled(method: str) -> Callable[[Circuit, str, list[str]], None]:
    def read(circuit: Circuit, name: str, words: list[str]) -> None:
        _no_more(words[5:])
        control = words[2], words[3]
        getattr(circuit, method)(name, words[0], words[1], control, read_number(words[4]))

    return read


def _diode(circuit: Circuit, name: str, words: list[str]) -> None:
    given = _settings(words[2:], ("is", "n", "cj"))
    circuit.diode(
        name, words[0], words[1], given.get("is", 1e-14), given.get("n", 1.0),
        given.get("cj", 0.0),
    )


def _bipolar(circuit: Circuit, name: str, words: list[str]) -> None:
    given = _settings(words[4:], ("is", "bf", "br"))
    circuit.bipolar(
        name, *words[:3], polarity={"npn": 1, "pnp": -1}[words[3].lower()],
        saturation=given.get("is", 1e-16), forward=given.get("bf", 100.0),
        reverse=given.get("br", 1.0),
    )


def _mosfet(circuit: Circuit, name: str, words: list[str]) -> None:
    given = _settings(words[4:], ("vto", "kp", "lambda"))
    circuit.mosfet(
        name, *words[:3], polarity={"nmos": 1, "pmos": -1}[words[3].lower()],
        threshold=given.get("vto", 1.0), gain=given.get("kp", 2e-5),
        modulation=given.get("lambda", 0.0),
    )


def _opamp(circuit: Circuit, name: str, words: list[str]) -> None:
    given = _settings(words[3:], ("gain",))
    circuit.opamp(name, words[0], words[1], words[2], given.get("gain", np.inf))


def _switch(circuit: Circuit, name: str, words: list[str]) -> None:
    given = _settings(words[4:], ("vt", "ron", "roff"))
    circuit.switch(
        name, words[0], words[1], (words[2], words[3]), given.get("vt", 0.0),
        given.get("ron", 1.0), given.get("roff", 1e9),
    )


ELEMENTS: dict[str, Callable[[Circuit, str, list[str]], None]] = {
    "r": _two_terminal("resistor"), "c": _two_terminal("capacitor"), "l": _two_terminal("inductor"),
    "v": _source("voltage"), "i": _source("current"), "d": _diode, "q": _bipolar, "m": _mosfet,
    "e": _controlled("controlled_voltage"), "g": _controlled("controlled_current"),
    "o": _opamp, "s": _switch,
}
