"""Problems with parameters: what `benchmarks/sensitivity.py` differentiates.

Three problems of the gallery with ten parameters in an array argument, and the same with a hundred,
where every one of the ten is the mean of ten shares. At the parameters given here they are the
problems of the gallery. The second half has events, impacts, switches and friction.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tether import gallery
from tether.gallery import circuits, raw_mechanisms

SHARES = 10
# by its name: the package has a function that is called the same
squeezer = importlib.import_module("tether.gallery.andrews")


@dataclass(frozen=True, eq=False)
class Model:
    """A residual ``fun(t, y, yp, p)`` with its parameters and its run."""

    name: str
    fun: Callable[..., Any]
    t_span: tuple[float, float]
    y0: np.ndarray
    yp0: np.ndarray | None
    p: np.ndarray
    scale: np.ndarray
    algebraic: tuple[int, ...] = ()
    solved: Callable[[Any, Any], list[Any]] | None = None      # the algebraic ones from the others
    options: dict[str, Any] = field(default_factory=dict)

    def atol(self, rtol: float) -> np.ndarray:
        """Absolute tolerances."""
        return rtol * self.scale

    def many(self) -> Model:
        """The same with each parameter as the mean of ten shares."""
        fun, inner, count = self.fun, self.solved, len(self.p)

        def means(p: Any) -> list[Any]:
            return [sum(p[SHARES * j + k] for k in range(SHARES)) / SHARES for j in range(count)]

        def shared(t: float, y: Any, yp: Any, p: Any) -> Any:
            return fun(t, y, yp, means(p))

        solved = None if inner is None else lambda x, p: inner(x, means(p))
        return Model(
            self.name, shared, self.t_span, self.y0, self.yp0, np.repeat(self.p, SHARES),
            self.scale, self.algebraic, solved, self.options,
        )


def _of(name: str, fun: Callable[..., Any], p: list[float], **options: Any) -> Model:
    problem = gallery.get(name)
    return Model(
        name, fun, problem.t_span, problem.y0, problem.yp0, np.array(p), problem.atol_scale,
        problem.algebraic, **options,
    )


def _robertson(t: float, y: Any, yp: Any, p: Any) -> list[Any]:
    s = t / (t + 100.0)
    slow = p[0] * (1.0 + s * (p[3] + s * p[6])) * y[0]
    back = p[1] * (1.0 + s * (p[4] + s * p[7])) * y[1] * y[2]
    fast = p[2] * (1.0 + s * (p[5] + s * p[8])) * y[1] * y[1]
    return [yp[0] + slow - back, yp[1] - slow + back + fast, y[0] + y[1] + y[2] - p[9]]


def robertson() -> Model:
    """Three rates, each a parabola of t / (t + 100), and the mass."""
    return _of(
        "robertson", _robertson, [0.04, 1e4, 3e7, *[0.0] * 6, 1.0],
        solved=lambda x, p: [p[9] - x[0] - x[1]],
    )


def _akzo(t: float, y: Any, yp: Any, p: Any) -> list[Any]:
    root = math.sqrt(y[1])
    r1 = p[0] * y[0] ** 4 * root
    r2 = p[1] * y[2] * y[3]
    r3 = p[2] / p[3] * y[0] * y[4]
    r4 = p[4] * y[0] * y[3] ** 2
    r5 = p[5] * y[5] ** 2 * root
    inflow = p[6] * (p[7] / p[8] - y[1])
    return [
        yp[0] + 2 * r1 - r2 + r3 + r4,
        yp[1] + 0.5 * r1 + r4 + 0.5 * r5 - inflow,
        yp[2] - r1 + r2 - r3,
        yp[3] + r2 - r3 + 2 * r4,
        yp[4] - r2 + r3 - r5,
        p[9] * y[0] * y[3] - y[5],
    ]


def akzo() -> Model:
    """All constants of the reactions and of the inflow."""
    return _of(
        "akzo", _akzo, [18.7, 0.58, 0.58, 34.4, 0.09, 0.42, 3.3, 0.9, 737.0, 115.83],
        solved=lambda x, p: [p[9] * x[0] * x[3]],
    )


def _andrews(index: int) -> Callable[..., Any]:
    s = squeezer

    def fun(t: float, y: Any, yp: Any, p: Any) -> list[Any]:
        be, th, ga, ph, de, om, ep = y[:7]
        v_be, v_th, v_ga, v_ph, v_de, v_om, v_ep = y[7:14]
        w_be, w_th, w_ga, w_ph, w_de, w_om, w_ep = y[14:21]
        l1, l2, l3, l4, l5, l6 = y[21:]
        sin_be, cos_be, sin_th, cos_th = math.sin(be), math.cos(be), math.sin(th), math.cos(th)
        sin_ga, cos_ga, sin_ph, cos_ph = math.sin(ga), math.cos(ga), math.sin(ph), math.cos(ph)
        sin_de, cos_de, sin_om, cos_om = math.sin(de), math.cos(de), math.sin(om), math.cos(om)
        sin_ep, cos_ep = math.sin(ep), math.cos(ep)
        sin_bt, cos_bt = math.sin(be + th), math.cos(be + th)
        sin_pd, cos_pd = math.sin(ph + de), math.cos(ph + de)
        sin_oe, cos_oe = math.sin(om + ep), math.cos(om + ep)

        torque, stiffness, length, i1, i2, i3, i4, i5, i6, i7 = (p[j] for j in range(10))
        mass_1 = s.MASS_1 - s.I1 - s.I2 + i1 + i2
        mass_2, mass_3, mass_4 = s.MASS_2 - s.I2 + i2, s.MASS_3 - s.I3 + i3, s.MASS_4 - s.I4 + i4
        mass_5 = s.MASS_5 - s.I4 - s.I5 + i4 + i5
        mass_6, mass_7 = s.MASS_6 - s.I6 + i6, s.MASS_7 - s.I6 - s.I7 + i6 + i7
        c_2, c_4, c_6 = s.COUPLING_2, s.COUPLING_4, s.COUPLING_6
        m11, m12 = mass_1 - 2 * c_2 * cos_th, mass_2 - c_2 * cos_th
        m45, m55 = mass_4 + c_4 * sin_ph, mass_5 + 2 * c_4 * sin_ph
        m67, m77 = mass_6 - c_6 * sin_om, mass_7 - 2 * c_6 * sin_om

        xd = s.SD * cos_ga + s.SC * sin_ga + (s.XB - s.XC)
        yd = s.SD * sin_ga - s.SC * cos_ga + (s.YB - s.YC)
        spring = stiffness * (length / math.sqrt(xd * xd + yd * yd) - 1)
        f1 = torque - c_2 * v_th * (v_th + 2 * v_be) * sin_th
        f2 = c_2 * v_be * v_be * sin_th
        f3 = spring * (
            xd * (s.SC * cos_ga - s.SD * sin_ga) + yd * (s.SD * cos_ga + s.SC * sin_ga)
        )
        f4 = c_4 * v_de * v_de * cos_ph
        f5 = -(c_4 * v_ph * (v_ph + 2 * v_de) * cos_ph)
        f6 = -(c_6 * v_ep * v_ep * cos_om)
        f7 = c_6 * v_om * (v_om + 2 * v_ep) * cos_om

        x_be, y_be = s.D * sin_bt - s.RR * sin_be, s.RR * cos_be - s.D * cos_bt
        x_th, y_th = s.D * sin_bt, -s.D * cos_bt
        x_ga, y_ga = -s.SS * cos_ga, -s.SS * sin_ga
        x_ph, y_ph = -s.E * cos_pd, -s.E * sin_pd
        x_de, y_de = s.ZT * sin_de + x_ph, -s.ZT * cos_de + y_ph
        x_om, y_om = s.ZF * sin_oe, -s.ZF * cos_oe
        x_ep, y_ep = x_om - s.U * cos_ep, y_om - s.U * sin_ep
        if index == 3:
            px, py = s.RR * cos_be - s.D * cos_bt, s.RR * sin_be - s.D * sin_bt
            gaps = [
                px - s.SS * sin_ga - s.XB,
                py + s.SS * cos_ga - s.YB,
                px - s.E * sin_pd - s.ZT * cos_de - s.XA,
                py + s.E * cos_pd - s.ZT * sin_de - s.YA,
                px - s.ZF * cos_oe - s.U * sin_ep - s.XA,
                py - s.ZF * sin_oe + s.U * cos_ep - s.YA,
            ]
        else:
            bt, pd, oe = (v_be + v_th) ** 2, (v_ph + v_de) ** 2, (v_om + v_ep) ** 2
            px = x_be * w_be + x_th * w_th + s.D * cos_bt * bt - s.RR * cos_be * v_be**2
            py = y_be * w_be + y_th * w_th + s.D * sin_bt * bt - s.RR * sin_be * v_be**2
            gaps = [
                px + x_ga * w_ga + s.SS * sin_ga * v_ga**2,
                py + y_ga * w_ga - s.SS * cos_ga * v_ga**2,
                px + x_ph * w_ph + x_de * w_de + s.E * sin_pd * pd + s.ZT * cos_de * v_de**2,
                py + y_ph * w_ph + y_de * w_de - s.E * cos_pd * pd + s.ZT * sin_de * v_de**2,
                px + x_om * w_om + x_ep * w_ep + s.ZF * cos_oe * oe + s.U * sin_ep * v_ep**2,
                py + y_om * w_om + y_ep * w_ep + s.ZF * sin_oe * oe - s.U * cos_ep * v_ep**2,
            ]
        lx, ly = l1 + l3 + l5, l2 + l4 + l6
        return [
            *(yp[i] - y[7 + i] for i in range(14)),
            m11 * w_be + m12 * w_th - f1 + x_be * lx + y_be * ly,
            m12 * w_be + mass_2 * w_th - f2 + x_th * lx + y_th * ly,
            mass_3 * w_ga - f3 + x_ga * l1 + y_ga * l2,
            mass_4 * w_ph + m45 * w_de - f4 + x_ph * l3 + y_ph * l4,
            m45 * w_ph + m55 * w_de - f5 + x_de * l3 + y_de * l4,
            mass_6 * w_om + m67 * w_ep - f6 + x_om * l5 + y_om * l6,
            m67 * w_om + m77 * w_ep - f7 + x_ep * l5 + y_ep * l6,
            *gaps,
        ]

    return fun


def andrews(index: int = 3) -> Model:
    """Torque, spring and moments of inertia of the seven bodies."""
    s = squeezer
    constants = [s.MOM, s.C0, s.L0, s.I1, s.I2, s.I3, s.I4, s.I5, s.I6, s.I7]
    return _of(f"andrews-i{index}", _andrews(index), constants)


# --- events, impacts, switches, friction: one vector of parameters for each -------------------


def _pendulum(t: float, y: Any, yp: Any, p: Any) -> list[Any]:
    x, z, u, v, lam = y
    gravity, length = p[0], p[1]
    return [
        yp[0] - u, yp[1] - v, yp[2] + lam * x, yp[3] + lam * z + gravity,
        x * x + z * z - length * length,
    ]


def _wall(t: float, y: Any, yp: Any, p: Any) -> Any:
    return y[0] - p[2]


def _bounce(t: float, y: Any, yp: Any, p: Any) -> list[Any]:
    return [y[0], y[1], -p[3] * y[2], -p[3] * y[3], y[4]]


_wall.direction = -1  # type: ignore[attr-defined]
_wall.apply = _bounce  # type: ignore[attr-defined]


def pendulum() -> Model:
    """Pendulum of index 3, without a wall."""
    return Model(
        "pendulum", _pendulum, (0.0, 1.0), np.array([1.0, 0.0, 0.0, 0.0, 0.0]),
        np.array([0.0, 0.0, 0.0, -9.81, 29.43]), np.array([9.81, 1.0]), np.ones(5), (4,),
    )


def pendulum_with_impacts() -> Model:
    """Pendulum of index 3 against a wall: gravity, length, place of the wall, restitution."""
    return Model(
        "pendulum of index 3, impacts", _pendulum, (0.0, 2.0),
        np.array([1.0, 0.0, 0.0, 0.0, 0.0]), None, np.array([9.81, 1.0, -0.3, 0.8]), np.ones(5),
        options={"events": _wall},
    )


def _slider_crank(t: float, y: Any, yp: Any, p: Any) -> list[Any]:
    phi, x, z, psi, s, v_phi, v_x, v_z, v_psi, v_s, l1, l2, l3, l4 = y
    crank, half = raw_mechanisms.CRANK, raw_mechanisms.ROD / 2
    torque, inertia, mass, rod_inertia, slider = (p[j] for j in range(5))
    sin_phi, cos_phi, sin_psi, cos_psi = (
        math.sin(phi), math.cos(phi), math.sin(psi), math.cos(psi)
    )
    return [
        yp[0] - v_phi,
        yp[1] - v_x,
        yp[2] - v_z,
        yp[3] - v_psi,
        yp[4] - v_s,
        inertia * yp[5] - crank * sin_phi * l1 + crank * cos_phi * l2 - torque,
        mass * yp[6] - l1 + l3,
        mass * yp[7] - l2 + l4 + mass * raw_mechanisms.GRAVITY,
        rod_inertia * yp[8] - half * (sin_psi * (l1 + l3) - cos_psi * (l2 + l4)),
        slider * yp[9] - l3,
        crank * cos_phi - (x - half * cos_psi),
        crank * sin_phi - (z - half * sin_psi),
        x + half * cos_psi - s,
        z + half * sin_psi,
    ]


def slider_crank() -> Model:
    """Slider-crank of index 3: torque, masses and moments of inertia."""
    return _of("slider-crank", _slider_crank, [0.1, 0.02, 1.0, 0.02, 2.0])


def _transamp(t: float, y: Any, yp: Any, p: Any) -> list[Any]:
    height, edge, supply, resistance, gain = (p[j] for j in range(5))
    c = circuits
    signal = height * math.sin(c.OMEGA * t) if t < edge else 0.0
    g1 = c.BETA * (math.exp((y[1] - y[2]) / c.UF) - 1)
    g2 = c.BETA * (math.exp((y[4] - y[5]) / c.UF) - 1)
    i1 = c.C1 * (yp[1] - yp[0])
    i3 = c.C3 * (yp[4] - yp[3])
    i5 = c.C5 * (yp[7] - yp[6])
    return [
        i1 - (y[0] - signal) / c.R0,
        -i1 - (2 * y[1] - supply) / resistance - (1 - gain) * g1,
        -c.C2 * yp[2] - y[2] / resistance + g1,
        i3 - (y[3] - supply) / resistance - gain * g1,
        -i3 - (2 * y[4] - supply) / resistance - (1 - gain) * g2,
        -c.C4 * yp[5] - y[5] / resistance + g2,
        i5 - (y[6] - supply) / resistance - gain * g2,
        -i5 - y[7] / resistance,
    ]


def transistor_amplifier() -> Model:
    """Transistor amplifier behind a sine that is switched off at a time that is a parameter."""
    return Model(
        "transistor amplifier, switched source", _transamp, (0.0, 0.02), gallery.get("transamp").y0,
        None, np.array([0.1, 0.0073, 6.0, 9000.0, 0.99]), np.ones(8),
        options={"start": "quiet"},
    )


def _diode_bridge(t: float, y: Any, yp: Any, p: Any) -> list[Any]:
    va, vb, i, vc = y
    load, smoothing, inside, leakage, height = (p[j] for j in range(5))

    def junction(voltage: Any) -> Any:
        law = math.exp(voltage / circuits.THERMAL_VOLTAGE) - 1
        return circuits.SATURATION * law + leakage * voltage

    i1, i2, i3, i4 = (junction(voltage) for voltage in (va - vc, vb - vc, -va, -vb))
    return [
        i + i3 - i1,
        -i + i4 - i2,
        va - vb - height * math.sin(2 * math.pi * 50 * t) + inside * i,
        smoothing * yp[3] - (i1 + i2 - vc / load),
    ]


def diode_bridge() -> Model:
    """Rectifier: load, capacitor, resistance of the source, leakage, voltage."""
    return _of("diode-bridge", _diode_bridge, [1e3, 1e-5, 1.0, 1e-6, 5.0])


def _stick_slip(t: float, y: Any, yp: Any, p: Any) -> list[Any]:
    x, v = y
    mass, spring, belt, dynamic, extra = (p[j] for j in range(5))
    sliding = belt - v
    friction = np.sign(sliding) * (dynamic + extra / (1.0 + 3.0 * abs(sliding)))
    return [yp[0] - v, mass * yp[1] + spring * x - friction]


def stick_slip() -> Model:
    """Mass on a belt: mass, spring, speed of the belt, friction."""
    return _of("stick-slip", _stick_slip, [1.0, 10.0, 0.2, 2.0, 1.0])


COST = (robertson, akzo, andrews)
HARD = (pendulum_with_impacts, slider_crank, transistor_amplifier, diode_bridge, stick_slip)
