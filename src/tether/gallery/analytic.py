"""Small problems whose exact solution is known for all times."""

import math

import numpy as np

from tether.gallery.base import FloatArray, GalleryProblem, Vector

TRIVIAL_C = """\
#include <math.h>
void residual(double t, const double *y, const double *yp, double *out)
{
    out[0] = yp[0] - cos(t);
    out[1] = y[1] - y[0];
}
"""


def _trivial(t: float, y: Vector, yp: Vector) -> list[float]:
    return [yp[0] - math.cos(t), y[1] - y[0]]


def _trivial_exact(t: float) -> FloatArray:
    return np.array([math.sin(t), math.sin(t)])


def trivial(t_end: float = 1000.0) -> GalleryProblem:
    """Integral of a cosine and a copy of it: y0' = cos t, y1 = y0.

    The residual costs almost nothing, so a run shows the cost of a step itself.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.trivial(t_end=2.0).fun(0.0, [0.0, 0.0], [1.0, 1.0])
    [0.0, 0.0]
    """
    return GalleryProblem(
        name="trivial",
        title="Quadrature of a cosine",
        description=(
            "A cosine is integrated and copied; the residual costs almost nothing."
        ),
        names=("y", "copy"),
        units=("", ""),
        picture=("y",),
        reference_digits=15,
        expected_digits=4,
        fun=_trivial,
        t_span=(0.0, t_end),
        y0=np.array([0.0, 0.0]),
        yp0=np.array([1.0, 1.0]),
        reference=_trivial_exact(t_end),
        source="exact: sin t",
        atol_scale=np.ones(2),
        algebraic=(1,),
        exact=_trivial_exact,
        c_source=TRIVIAL_C,
    )


def _cosine_and_sine(t: float) -> FloatArray:
    return np.array([math.cos(t), math.sin(t)])


def prothero_robinson(stiffness: float = 1e4, t_end: float = 10.0) -> GalleryProblem:
    """Stiff attraction to a known curve, with one algebraic unknown.

    y' + s (y - cos t) + z = 0 and y + z = cos t + sin t, solved by y = cos t, z = sin t for every
    stiffness s: the idea of Prothero and Robinson (1974) with an algebraic equation added. A
    method that loses order on stiff problems shows it here.

    Parameters
    ----------
    stiffness : float
        Rate s of the attraction.
    t_end : float
        End of the interval.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.prothero_robinson(stiffness=1e8).exact(0.0)
    array([1., 0.])
    """

    def fun(t: float, y: Vector, yp: Vector) -> list[float]:
        curve = math.cos(t)
        return [yp[0] + stiffness * (y[0] - curve) + y[1], y[0] + y[1] - curve - math.sin(t)]

    return GalleryProblem(
        name="prothero-robinson",
        title="Prothero and Robinson",
        description=(
            "Stiff attraction to a known curve: methods that lose order show it here."
        ),
        names=("y", "z"),
        units=("", ""),
        picture=("y", "z"),
        reference_digits=15,
        expected_digits=6,
        fun=fun,
        t_span=(0.0, t_end),
        y0=np.array([1.0, 0.0]),
        yp0=np.array([0.0, 1.0]),
        reference=_cosine_and_sine(t_end),
        source="exact: cos t, sin t",
        atol_scale=np.ones(2),
        algebraic=(1,),
        exact=_cosine_and_sine,
    )


def _rotor(t: float, y: Vector, yp: Vector) -> list[float]:
    a, b, w = y
    speed = 2 + math.cos(t)
    return [yp[0] - w * b, yp[1] + w * a, w**3 + w * (a * a + b * b) - speed**3 - speed]


def _rotor_exact(t: float) -> FloatArray:
    angle = 2 * t + math.sin(t)
    return np.array([math.sin(angle), math.cos(angle), 2 + math.cos(t)])


def rotor(t_end: float = 10.0) -> GalleryProblem:
    """Rotor whose speed solves a cubic: a nonlinear DAE of index 1.

    a' = w b, b' = -w a and w^3 + w (a^2 + b^2) = c(t). The cubic is monotone in w, so w is
    determined everywhere; c is chosen so that the speed is w = 2 + cos t and the angle
    2 t + sin t.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.rotor().exact(0.0)
    array([0., 1., 3.])
    """
    return GalleryProblem(
        name="rotor",
        title="Rotor",
        description="A rotor whose speed solves a cubic equation at every time.",
        names=("a", "b", "w"),
        units=("", "", "rad/s"),
        picture=("a", "b"),
        reference_digits=15,
        expected_digits=5,
        fun=_rotor,
        t_span=(0.0, t_end),
        y0=np.array([0.0, 1.0, 3.0]),
        yp0=np.array([3.0, 0.0, 0.0]),
        reference=_rotor_exact(t_end),
        source="exact: rotation by the angle 2 t + sin t",
        atol_scale=np.ones(3),
        algebraic=(2,),
        exact=_rotor_exact,
    )


def _sine_and_cosine(t: float) -> FloatArray:
    return np.array([math.sin(t), math.cos(t)])


def _implicit_oscillator(t: float, y: Vector, yp: Vector) -> list[float]:
    q, p = y
    dq, dp = yp
    return [dq**3 + dq - p**3 - p, dp + 0.5 * math.sin(dp) + q + 0.5 * math.sin(q)]


def implicit_oscillator(t_end: float = 10.0) -> GalleryProblem:
    """Oscillator q' = p, p' = -q in which both slopes occur nonlinearly: index 0.

    q'^3 + q' = p^3 + p and p' + sin(p')/2 + q + sin(q)/2 = 0. Both left sides are monotone in
    the slope, which makes the harmonic oscillator the only solution.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.implicit_oscillator().fun(0.0, [0.0, 1.0], [1.0, 0.0])
    [0.0, 0.0]
    """
    return GalleryProblem(
        name="implicit-oscillator",
        title="Implicit oscillator",
        description="An oscillator in which both slopes occur nonlinearly.",
        names=("q", "p"),
        units=("", ""),
        picture=("q", "p"),
        reference_digits=15,
        expected_digits=5,
        fun=_implicit_oscillator,
        t_span=(0.0, t_end),
        y0=np.array([0.0, 1.0]),
        yp0=np.array([1.0, 0.0]),
        reference=_sine_and_cosine(t_end),
        source="exact: sin t, cos t",
        atol_scale=np.ones(2),
        index=0,
        exact=_sine_and_cosine,
    )


def harmonic(frequency: float = 1.0, t_end: float = 10.0) -> GalleryProblem:
    """Harmonic oscillator q' = p, p' = -f^2 q as a residual: index 0.

    Parameters
    ----------
    frequency : float
        Angular frequency f.
    t_end : float
        End of the interval.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.harmonic(frequency=2.0).exact(0.0)
    array([0., 2.])
    """

    def fun(t: float, y: Vector, yp: Vector) -> list[float]:
        return [yp[0] - y[1], yp[1] + frequency * frequency * y[0]]

    def jac(t: float, y: Vector, yp: Vector) -> tuple[FloatArray, FloatArray]:
        return np.array([[0.0, -1.0], [frequency * frequency, 0.0]]), np.eye(2)

    def exact(t: float) -> FloatArray:
        return np.array([math.sin(frequency * t), frequency * math.cos(frequency * t)])

    return GalleryProblem(
        name="harmonic",
        title="Harmonic oscillator",
        description="The harmonic oscillator of every textbook, as a residual.",
        names=("q", "p"),
        units=("", ""),
        picture=("q", "p"),
        reference_digits=15,
        expected_digits=5,
        fun=fun,
        t_span=(0.0, t_end),
        y0=np.array([0.0, frequency]),
        yp0=np.array([frequency, 0.0]),
        reference=exact(t_end),
        source="exact: sin f t, f cos f t",
        atol_scale=np.ones(2),
        index=0,
        jac=jac,
        exact=exact,
    )
