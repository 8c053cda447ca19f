"""Electric circuits."""

import math

import numpy as np

from tether.gallery.base import FloatArray, GalleryProblem, Vector

UB, UF, ALPHA, BETA = 6.0, 0.026, 0.99, 1e-6
R0, R = 1000.0, 9000.0
C1, C2, C3, C4, C5 = 1e-6, 2e-6, 3e-6, 4e-6, 5e-6
OMEGA = 200 * math.pi

# First rows of the pairs coupled by a floating capacitor: the sum of a pair has no derivative.
_PAIRS = (0, 3, 6)


def _transamp(t: float, y: Vector, yp: Vector) -> list[float]:
    signal = 0.1 * math.sin(OMEGA * t)
    g1 = BETA * (math.exp((y[1] - y[2]) / UF) - 1)
    g2 = BETA * (math.exp((y[4] - y[5]) / UF) - 1)
    i1 = C1 * (yp[1] - yp[0])
    i3 = C3 * (yp[4] - yp[3])
    i5 = C5 * (yp[7] - yp[6])
    return [
        i1 - (y[0] - signal) / R0,
        -i1 - (2 * y[1] - UB) / R - (1 - ALPHA) * g1,
        -C2 * yp[2] - y[2] / R + g1,
        i3 - (y[3] - UB) / R - ALPHA * g1,
        -i3 - (2 * y[4] - UB) / R - (1 - ALPHA) * g2,
        -C4 * yp[5] - y[5] / R + g2,
        i5 - (y[6] - UB) / R - ALPHA * g2,
        -i5 - y[7] / R,
    ]


def _transamp_jac(t: float, y: Vector, yp: Vector) -> tuple[FloatArray, FloatArray]:
    f_y = np.diag([-1 / R0, -2 / R, -1 / R, -1 / R, -2 / R, -1 / R, -1 / R, -1 / R])
    for base in (1, 4):
        slope = BETA / UF * math.exp((y[base] - y[base + 1]) / UF)
        for row, share in ((base, ALPHA - 1), (base + 1, 1.0), (base + 2, -ALPHA)):
            f_y[row, base] += share * slope
            f_y[row, base + 1] -= share * slope
    f_yp = np.zeros((8, 8))
    for row, capacity in zip(_PAIRS, (C1, C3, C5), strict=True):
        f_yp[row : row + 2, row : row + 2] = [[-capacity, capacity], [capacity, -capacity]]
    f_yp[2, 2], f_yp[5, 5] = -C2, -C4
    return f_y, f_yp


def _transamp_slopes(y0: FloatArray) -> FloatArray:
    """Slopes that satisfy the equations and the derivatives of the three hidden ones."""
    f_y, matrix = _transamp_jac(0.0, y0.tolist(), [0.0] * 8)
    right = -np.array(_transamp(0.0, y0.tolist(), [0.0] * 8))
    f_t = np.zeros(8)
    f_t[0] = 0.1 * OMEGA / R0
    for row in _PAIRS:
        matrix[row] = f_y[row] + f_y[row + 1]
        right[row] = -(f_t[row] + f_t[row + 1])
    return np.linalg.solve(matrix, right)


def transamp() -> GalleryProblem:
    """Transistor amplifier: singular leading matrix without a single algebraic unknown: index 1.

    Both transistors are exponential in a voltage difference over 26 mV, so the equations are
    strongly nonlinear, and a poor Newton iterate overflows. The starting slopes are computed: those
    printed in the Test Set have only four digits right for its own parameters.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.transamp().yp0.round(4)[:3].tolist()
    [51.3393, 51.3393, -166.6667]
    """
    y0 = np.array([0.0, 3.0, 3.0, 6.0, 3.0, 3.0, 6.0, 0.0])
    return GalleryProblem(
        name="transamp",
        title="Transistor amplifier",
        description=(
            "Two transistors amplify a sine of 100 Hz. Capacitors couple the stages, so that "
            "the leading matrix is singular although every voltage has a slope."
        ),
        names=tuple(f"u{k}" for k in range(1, 9)),
        units=("V",) * 8,
        picture=("u1", "u8"),
        reference_digits=12,
        expected_digits=6,
        fun=_transamp,
        t_span=(0.0, 0.2),
        y0=y0,
        yp0=_transamp_slopes(y0),
        reference=np.array(
            [
                -0.5562145012262709e-2,
                0.3006522471903042e1,
                0.2849958788608128e1,
                0.2926422536206241e1,
                0.2704617865010554e1,
                0.2761837778393145e1,
                0.4770927631616772e1,
                0.1236995868091548e1,
            ]
        ),
        source="Test Set for IVP Solvers, transamp (PSIDE, tolerance 1e-14)",
        atol_scale=np.ones(8),
        jac=_transamp_jac,
    )


THERMAL_VOLTAGE, SATURATION = 0.02585, 1e-14


def _junction(voltage: float) -> float:
    """Return the current through a diode by Shockley's law."""
    return SATURATION * (math.exp(voltage / THERMAL_VOLTAGE) - 1)


def _diode_bridge(t: float, y: Vector, yp: Vector) -> list[float]:
    va, vb, i, vc = y
    load, smoothing, inside, leakage = 1e3, 1e-5, 1.0, 1e-6
    i1, i2, i3, i4 = (
        _junction(voltage) + leakage * voltage for voltage in (va - vc, vb - vc, -va, -vb)
    )
    return [
        i + i3 - i1,
        -i + i4 - i2,
        va - vb - 5.0 * math.sin(2 * math.pi * 50 * t) + inside * i,
        smoothing * yp[3] - (i1 + i2 - vc / load),
    ]


def diode_bridge() -> GalleryProblem:
    """Rectifier of four diodes with a capacitor: index 1.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.diode_bridge().names
    ('va', 'vb', 'i', 'vc')
    """
    return GalleryProblem(
        name="diode-bridge",
        title="Diode bridge",
        description=(
            "Four diodes rectify 5 V at 50 Hz for a capacitor and a load. While all of them "
            "block, only their leakage of a microampere determines the potential of the source."
        ),
        fun=_diode_bridge,
        t_span=(0.0, 0.05),
        y0=np.zeros(4),
        names=("va", "vb", "i", "vc"),
        units=("V", "V", "A", "V"),
        picture=("va", "vc"),
        reference=np.array([1.168019721574, 1.168019721574, 2.336039443147]),
        compare=(0, 1, 3),
        source="symmetry (va + vb = vc), then SciPy's LSODA for one equation, tolerance 1e-12",
        reference_digits=9,
        expected_digits=6,
        atol_scale=np.array([1.0, 1.0, 1e-3, 1.0]),
        algebraic=(0, 1, 2),
    )


def _buck(t: float, y: Vector, yp: Vector) -> list[float]:
    i, v, node, i_switch, i_diode = y
    supply, period, duty, resistance = 24.0, 1e-4, 0.5, 0.01
    closed = t % period < duty * period
    return [
        5e-4 * yp[0] - (node - v),
        2e-5 * yp[1] - (i - v / 10.0),
        i_switch + i_diode - i,
        node - supply + resistance * i_switch if closed else i_switch,
        min(i_diode, node),
    ]


def buck_converter() -> GalleryProblem:
    """DC-DC converter with pulse width modulation and an ideal diode: index 1.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.buck_converter().algebraic
    (2, 3, 4)
    """
    return GalleryProblem(
        name="buck-converter",
        title="Buck converter",
        description=(
            "A transistor that switches at 10 kHz and an ideal diode turn 24 V into 12 V. The "
            "diode is one equation, min(current, voltage) = 0, and every edge of the switch makes "
            "currents jump."
        ),
        fun=_buck,
        t_span=(0.0, 2e-3),
        y0=np.array([0.0, 0.0, 24.0, 0.0, 0.0]),
        names=("i", "v", "node", "i_switch", "i_diode"),
        units=("A", "V", "V", "A", "A"),
        picture=("i", "v"),
        reference=np.array([0.5908357247332, 11.90228382403]),
        compare=(0, 1),
        source="exact: matrix exponentials from edge to edge",
        reference_digits=12,
        expected_digits=6,
        atol_scale=np.ones(5),
        algebraic=(2, 3, 4),
    )


def _boost(t: float, y: Vector, yp: Vector) -> list[float]:
    i, v, node, i_switch, i_diode = y
    supply, period = 12.0, 1e-5
    closed = t % period < 0.5 * period
    return [
        1e-4 * yp[0] - (supply - node),
        1e-5 * yp[1] - (i_diode - v / 20.0),
        i_switch + i_diode - i,
        node if closed else i_switch,
        min(i_diode, v - node),
    ]


def boost_converter() -> GalleryProblem:
    """DC-DC converter that raises a voltage, with an ideal switch and an ideal diode: index 1.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.boost_converter().names[0]
    'i'
    """
    return GalleryProblem(
        name="boost-converter",
        title="Boost converter",
        description=(
            "An ideal switch at 100 kHz and an ideal diode turn 12 V into 24 V. When the switch "
            "opens, only the diode can take over the current of the inductor, and when it closes, "
            "the diode has to block."
        ),
        fun=_boost,
        t_span=(0.0, 3e-4),
        y0=np.array([0.0, 12.0, 0.0, 0.0, 0.0]),
        names=("i", "v", "node", "i_switch", "i_diode"),
        units=("A", "V", "V", "A", "A"),
        picture=("i", "v"),
        reference=np.array([0.44947881678, 26.72384816354]),
        compare=(0, 1),
        source="exact: matrix exponentials from edge to edge",
        reference_digits=12,
        expected_digits=5,
        atol_scale=np.ones(5),
        algebraic=(2, 3, 4),
    )


def _sallen_key(t: float, y: Vector, yp: Vector) -> list[float]:
    v1, v2, vo, io = y
    resistance, c1, c2, load = 1e4, 2e-8, 1e-8, 1e4
    source = math.sin(2 * math.pi * 1000 * t)
    feedback = c1 * (yp[0] - yp[2])
    return [
        (source - v1) / resistance - (v1 - v2) / resistance - feedback,
        (v1 - v2) / resistance - c2 * yp[1],
        v2 - vo,
        io + feedback - vo / load,
    ]


def sallen_key() -> GalleryProblem:
    """Low-pass filter with an ideal operational amplifier: index 1.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.sallen_key().index
    1
    """
    return GalleryProblem(
        name="sallen-key",
        title="Sallen-Key filter",
        description=(
            "A second-order low-pass filter with an ideal operational amplifier, which keeps its "
            "inputs equal (v2 = vo) by whatever current io that takes."
        ),
        fun=_sallen_key,
        t_span=(0.0, 5e-3),
        y0=np.zeros(4),
        names=("v1", "v2", "vo", "io"),
        units=("V", "V", "V", "A"),
        picture=("v1", "vo"),
        reference=np.array(
            [
                -0.6926243463493,
                -0.7740686132973,
                -0.7740686132973,
                -0.0001385248692699,
            ]
        ),
        source="exact: matrix exponential and steady oscillation",
        reference_digits=12,
        expected_digits=5,
        atol_scale=np.array([1.0, 1.0, 1.0, 1e-3]),
        algebraic=(3,),
    )


def _charge_pump(t: float, y: Vector, yp: Vector) -> list[float]:
    v1, v2, v3, vo, phase, antiphase, i_phase, i_antiphase = y
    supply, coupling, load, smoothing = 3.0, 1e-8, 1e5, 1e-8
    swing = 1.5 * math.sin(2 * math.pi * 1e5 * t)
    i0, i1 = _junction(supply - v1), _junction(v1 - v2)
    i2, i3 = _junction(v2 - v3), _junction(v3 - vo)
    return [
        coupling * (yp[0] - yp[4]) - (i0 - i1),
        coupling * (yp[1] - yp[5]) - (i1 - i2),
        coupling * (yp[2] - yp[4]) - (i2 - i3),
        smoothing * yp[3] - (i3 - vo / load),
        phase - (1.5 - swing),
        antiphase - (1.5 + swing),
        i_phase - coupling * (2 * yp[4] - yp[0] - yp[2]),
        i_antiphase - coupling * (yp[5] - yp[1]),
    ]


def charge_pump() -> GalleryProblem:
    """Dickson's charge pump of three stages: index 1.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.charge_pump().n
    8
    """
    return GalleryProblem(
        name="charge-pump",
        title="Charge pump",
        description=(
            "Dickson's pump: two clocks in antiphase push charge through four diodes up to more "
            "than twice the supply. The clocks are connected to capacitors, so their currents "
            "follow from slopes of voltages that are prescribed."
        ),
        fun=_charge_pump,
        t_span=(0.0, 1e-4),
        y0=np.array([2.4, 1.8, 1.2, 0.6, 1.5, 1.5, 0.0, 0.0]),
        names=("v1", "v2", "v3", "vo", "phase", "antiphase", "i_phase", "i_antiphase"),
        units=("V", "V", "V", "V", "V", "V", "A", "A"),
        picture=("v1", "v2", "v3", "vo"),
        reference=np.array([3.090804184111, 5.463302428736, 6.700585127886, 7.563190129293]),
        compare=(0, 1, 2, 3),
        source="SciPy's Radau and LSODA for the four voltages, tolerance 1e-11",
        reference_digits=9,
        expected_digits=5,
        atol_scale=np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1e-3, 1e-3]),
        algebraic=(6, 7),
    )


def _ring_modulator(t: float, y: Vector, yp: Vector) -> list[float]:
    u1, u2, u3, u4, u5, u6, u7, i1, i2, i3, i4, i5, i6, i7, i8 = y
    c, cs, cp, r, rp, lh = 1.6e-8, 2e-12, 1e-8, 25e3, 50.0, 4.45
    ls1, ls2, ls3, rg1, rg2, rg3, ri, rc = 2e-3, 5e-4, 5e-4, 36.3, 17.3, 17.3, 50.0, 600.0
    signal, carrier = 0.5 * math.sin(2e3 * math.pi * t), 2 * math.sin(2e4 * math.pi * t)

    def diode(voltage: float) -> float:
        return 40.67286402e-9 * (math.exp(17.7493332 * voltage) - 1)

    q1, q2 = diode(u3 - u5 - u7 - carrier), diode(-u4 + u6 - u7 - carrier)
    q3, q4 = diode(u4 + u5 + u7 + carrier), diode(-u3 - u6 + u7 + carrier)
    return [
        c * yp[0] - (i1 - 0.5 * i3 + 0.5 * i4 + i7 - u1 / r),
        c * yp[1] - (i2 - 0.5 * i5 + 0.5 * i6 + i8 - u2 / r),
        cs * yp[2] - (i3 - q1 + q4),
        cs * yp[3] - (-i4 + q2 - q3),
        cs * yp[4] - (i5 + q1 - q3),
        cs * yp[5] - (-i6 - q2 + q4),
        cp * yp[6] - (-u7 / rp + q1 + q2 - q3 - q4),
        lh * yp[7] + u1,
        lh * yp[8] + u2,
        ls2 * yp[9] - (0.5 * u1 - u3 - rg2 * i3),
        ls3 * yp[10] - (-0.5 * u1 + u4 - rg3 * i4),
        ls2 * yp[11] - (0.5 * u2 - u5 - rg2 * i5),
        ls3 * yp[12] - (-0.5 * u2 + u6 - rg3 * i6),
        ls1 * yp[13] - (-u1 + signal - (ri + rg1) * i7),
        ls1 * yp[14] - (-u2 - (rc + rg1) * i8),
    ]


def ring_modulator() -> GalleryProblem:
    """Ring modulator of the Test Set for IVP Solvers: index 0.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.ring_modulator().n
    15
    """
    return GalleryProblem(
        name="ring-modulator",
        title="Ring modulator",
        description=(
            "Four diodes in a ring mix a signal of 1 kHz with a carrier of 10 kHz. With parasitic "
            "capacitances of 2 pF it oscillates at several MHz, which takes many steps."
        ),
        fun=_ring_modulator,
        t_span=(0.0, 1e-3),
        y0=np.zeros(15),
        names=(*(f"u{k}" for k in range(1, 8)), *(f"i{k}" for k in range(1, 9))),
        units=("V",) * 7 + ("A",) * 8,
        picture=("u1", "u2"),
        reference=np.array(
            [
                -0.2339057358486745e-1,
                -0.7367485485540825e-2,
                0.2582956709291169,
                -0.4064465721283450,
                -0.4039455665149794,
                0.2607966765422943,
                0.1106761861269975,
                0.2939904342435596e-6,
                -0.2840029933642329e-7,
                0.7267198267264553e-3,
                0.7929487196960840e-3,
                -0.7255283495698965e-3,
                -0.7941401968526521e-3,
                0.7088495416976114e-4,
                0.2390059075236570e-4,
            ]
        ),
        source="Test Set for IVP Solvers, ringmod; SciPy's Radau agrees to 7 digits",
        reference_digits=7,
        expected_digits=3,
        atol_scale=np.array([1.0] * 7 + [1e-3] * 8),
        index=0,
    )


def _overdrive(voltage: float) -> float:
    """Square of the voltage of a gate above its threshold of 0.7 V, or zero."""
    return max(voltage - 0.7, 0.0) ** 2


def _nand(t: float, y: Vector, yp: Vector) -> list[float]:
    a, b, middle, out, supply_current = y
    supply, gain_n, gain_p, wire, load = 5.0, 2e-4, 1e-4, 5e-15, 5e-14
    # transistors by the model of Shichman and Hodges, symmetric in source and drain
    i_a = gain_p / 2 * (_overdrive(supply - a) - _overdrive(out - a))
    i_b = gain_p / 2 * (_overdrive(supply - b) - _overdrive(out - b))
    i_top = gain_n / 2 * (_overdrive(a - middle) - _overdrive(a - out))
    i_bottom = gain_n / 2 * (_overdrive(b) - _overdrive(b - middle))
    return [
        a - np.interp(t % 2e-8, [0.0, 4e-9, 5e-9, 1.4e-8, 1.5e-8], [0.0, 0.0, 5.0, 5.0, 0.0]),
        b - np.interp(t % 4e-8, [0.0, 8e-9, 9e-9, 2.8e-8, 2.9e-8], [0.0, 0.0, 5.0, 5.0, 0.0]),
        wire * yp[2] - (i_top - i_bottom),
        load * yp[3] - (i_a + i_b - i_top),
        supply_current - (i_a + i_b),
    ]


def nand_gate() -> GalleryProblem:
    """NAND gate of four MOS transistors with two pulsed inputs: index 1.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.nand_gate().names
    ('a', 'b', 'middle', 'out', 'supply_current')
    """
    return GalleryProblem(
        name="nand-gate",
        title="NAND gate",
        description=(
            "Four MOS transistors form a NAND gate, with trapezoidal pulses of 5 V as its inputs. "
            "Transistors cut off, conduct and saturate in turn, within nanoseconds. This is not "
            "the gate of the Test Set, which has other transistors."
        ),
        fun=_nand,
        t_span=(0.0, 1.45e-8),
        y0=np.array([0.0, 0.0, 0.0, 5.0, 0.0]),
        names=("a", "b", "middle", "out", "supply_current"),
        units=("V", "V", "V", "V", "A"),
        picture=("a", "b", "out"),
        reference=np.array([0.06878454065194, 0.2534994467718, 0.000162]),
        compare=(2, 3, 4),
        source="SciPy's Radau for two voltages, restarted at every edge, tolerance 1e-11",
        reference_digits=9,
        expected_digits=6,
        atol_scale=np.array([1.0, 1.0, 1.0, 1.0, 1e-4]),
        algebraic=(0, 1, 4),
    )
