"""Andrews' squeezing mechanism: seven bodies in a plane, three closed loops."""

import math

import numpy as np

from tether.gallery.base import GalleryProblem, Residual, Vector
from tether.gallery.mechanisms import check_index, with_index

# Names as in the Test Set: masses, moments of inertia, fixed points, spring, lengths, motor.
M1, M2, M3, M4, M5, M6, M7 = 0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498
I1, I2, I3, I4 = 2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7
I5, I6, I7 = 1.169e-5, 5.667e-7, 1.912e-5
XA, YA, XB, YB, XC, YC = -0.06934, -0.00227, -0.03635, 0.03273, 0.014, 0.072
C0, L0, MOM = 4530.0, 0.07785, 0.033
D, DA, E, EA, RR, RA = 0.028, 0.0115, 0.02, 0.01421, 0.007, 0.00092
SS, SA, SB, SC, SD = 0.035, 0.01874, 0.01043, 0.018, 0.02
TA, TB, U, UA, UB = 0.02308, 0.00916, 0.04, 0.01228, 0.00449
ZF, ZT, FA = 0.02, 0.04, 0.01421

# Constant parts of the mass matrix, and the couplings of two consecutive bodies.
COUPLING_2 = M2 * DA * RR
COUPLING_4 = M4 * ZT * (E - EA)
COUPLING_6 = M6 * U * (ZF - FA)
MASS_1 = M1 * RA**2 + M2 * (RR**2 + DA**2) + I1 + I2
MASS_2 = M2 * DA**2 + I2
MASS_3 = M3 * (SA**2 + SB**2) + I3
MASS_4 = M4 * (E - EA) ** 2 + I4
MASS_5 = M4 * (ZT**2 + (E - EA) ** 2) + M5 * (TA**2 + TB**2) + I4 + I5
MASS_6 = M6 * (ZF - FA) ** 2 + I6
MASS_7 = M6 * (U**2 + (ZF - FA) ** 2) + M7 * (UA**2 + UB**2) + I6 + I7

ANDREWS_C = """\
#include <math.h>

#define SQ(a) ((a) * (a))

void residual(double t, const double *y, const double *yp, double *out)
{
    const double m1 = 0.04325, m2 = 0.00365, m3 = 0.02373, m4 = 0.00706, m5 = 0.07050;
    const double m6 = 0.00706, m7 = 0.05498;
    const double i1 = 2.194e-6, i2 = 4.410e-7, i3 = 5.255e-6, i4 = 5.667e-7, i5 = 1.169e-5;
    const double i6 = 5.667e-7, i7 = 1.912e-5;
    const double xa = -0.06934, ya = -0.00227, xb = -0.03635, yb = 0.03273, xc = 0.014, yc = 0.072;
    const double c0 = 4530.0, l0 = 0.07785, mom = 0.033;
    const double d = 0.028, da = 0.0115, e = 0.02, ea = 0.01421, rr = 0.007, ra = 0.00092;
    const double ss = 0.035, sa = 0.01874, sb = 0.01043, sc = 0.018, sd = 0.02;
    const double ta = 0.02308, tb = 0.00916, u = 0.04, ua = 0.01228, ub = 0.00449;
    const double zf = 0.02, zt = 0.04, fa = 0.01421;

    const double *v = y + 7, *w = y + 14, *l = y + 21;
    double sin_be = sin(y[0]), cos_be = cos(y[0]), sin_th = sin(y[1]), cos_th = cos(y[1]);
    double sin_ga = sin(y[2]), cos_ga = cos(y[2]), sin_ph = sin(y[3]), cos_ph = cos(y[3]);
    double sin_de = sin(y[4]), cos_de = cos(y[4]), sin_om = sin(y[5]), cos_om = cos(y[5]);
    double sin_ep = sin(y[6]), cos_ep = cos(y[6]);
    double sin_bt = sin(y[0] + y[1]), cos_bt = cos(y[0] + y[1]);
    double sin_pd = sin(y[3] + y[4]), cos_pd = cos(y[3] + y[4]);
    double sin_oe = sin(y[5] + y[6]), cos_oe = cos(y[5] + y[6]);

    /* mass matrix, of blocks 2, 1, 2 and 2 */
    double c2 = m2 * da * rr, c4 = m4 * zt * (e - ea), c6 = m6 * u * (zf - fa);
    double m11 = m1 * SQ(ra) + m2 * (SQ(rr) + SQ(da)) + i1 + i2 - 2 * c2 * cos_th;
    double m22 = m2 * SQ(da) + i2, m12 = m22 - c2 * cos_th;
    double m33 = m3 * (SQ(sa) + SQ(sb)) + i3;
    double m44 = m4 * SQ(e - ea) + i4, m45 = m44 + c4 * sin_ph;
    double m55 = m4 * (SQ(zt) + SQ(e - ea)) + m5 * (SQ(ta) + SQ(tb)) + i4 + i5 + 2 * c4 * sin_ph;
    double m66 = m6 * SQ(zf - fa) + i6, m67 = m66 - c6 * sin_om;
    double m77 = m6 * (SQ(u) + SQ(zf - fa)) + m7 * (SQ(ua) + SQ(ub)) + i6 + i7 - 2 * c6 * sin_om;

    /* motor, spring and what the velocities contribute */
    double xd = sd * cos_ga + sc * sin_ga + xb - xc, yd = sd * sin_ga - sc * cos_ga + yb - yc;
    double spring = c0 * (l0 / sqrt(xd * xd + yd * yd) - 1);
    double f1 = mom - c2 * v[1] * (v[1] + 2 * v[0]) * sin_th;
    double f2 = c2 * v[0] * v[0] * sin_th;
    double f3 = spring * (xd * (sc * cos_ga - sd * sin_ga) + yd * (sd * cos_ga + sc * sin_ga));
    double f4 = c4 * v[4] * v[4] * cos_ph;
    double f5 = -c4 * v[3] * (v[3] + 2 * v[4]) * cos_ph;
    double f6 = -c6 * v[6] * v[6] * cos_om;
    double f7 = c6 * v[5] * (v[5] + 2 * v[6]) * cos_om;

    /* derivatives of the loops' gaps by the angles */
    double x_be = d * sin_bt - rr * sin_be, y_be = rr * cos_be - d * cos_bt;
    double x_th = d * sin_bt, y_th = -d * cos_bt;
    double x_ga = -ss * cos_ga, y_ga = -ss * sin_ga;
    double x_ph = -e * cos_pd, y_ph = -e * sin_pd;
    double x_de = zt * sin_de + x_ph, y_de = -zt * cos_de + y_ph;
    double x_om = zf * sin_oe, y_om = -zf * cos_oe;
    double x_ep = x_om - u * cos_ep, y_ep = y_om - u * sin_ep;

    double lx = l[0] + l[2] + l[4], ly = l[1] + l[3] + l[5];
    for (int i = 0; i < 14; i++)
        out[i] = yp[i] - y[7 + i];
    out[14] = m11 * w[0] + m12 * w[1] - f1 + x_be * lx + y_be * ly;
    out[15] = m12 * w[0] + m22 * w[1] - f2 + x_th * lx + y_th * ly;
    out[16] = m33 * w[2] - f3 + x_ga * l[0] + y_ga * l[1];
    out[17] = m44 * w[3] + m45 * w[4] - f4 + x_ph * l[2] + y_ph * l[3];
    out[18] = m45 * w[3] + m55 * w[4] - f5 + x_de * l[2] + y_de * l[3];
    out[19] = m66 * w[5] + m67 * w[6] - f6 + x_om * l[4] + y_om * l[5];
    out[20] = m67 * w[5] + m77 * w[6] - f7 + x_ep * l[4] + y_ep * l[5];

#if INDEX == 3
    double px = rr * cos_be - d * cos_bt, py = rr * sin_be - d * sin_bt;
    out[21] = px - ss * sin_ga - xb;
    out[22] = py + ss * cos_ga - yb;
    out[23] = px - e * sin_pd - zt * cos_de - xa;
    out[24] = py + e * cos_pd - zt * sin_de - ya;
    out[25] = px - zf * cos_oe - u * sin_ep - xa;
    out[26] = py - zf * sin_oe + u * cos_ep - ya;
#else
#if INDEX == 2
    const double *a = v;
    for (int i = 21; i < 27; i++)
        out[i] = 0;
#else
    const double *a = w;
    double bt = SQ(v[0] + v[1]), pd = SQ(v[3] + v[4]), oe = SQ(v[5] + v[6]);
    double be = v[0] * v[0], ga = v[2] * v[2], de = v[4] * v[4], ep = v[6] * v[6];
    double kx = d * cos_bt * bt - rr * cos_be * be, ky = d * sin_bt * bt - rr * sin_be * be;
    out[21] = kx + ss * sin_ga * ga;
    out[22] = ky - ss * cos_ga * ga;
    out[23] = kx + e * sin_pd * pd + zt * cos_de * de;
    out[24] = ky - e * cos_pd * pd + zt * sin_de * de;
    out[25] = kx + zf * cos_oe * oe + u * sin_ep * ep;
    out[26] = ky + zf * sin_oe * oe - u * cos_ep * ep;
#endif
    double ax = x_be * a[0] + x_th * a[1], ay = y_be * a[0] + y_th * a[1];
    out[21] += ax + x_ga * a[2];
    out[22] += ay + y_ga * a[2];
    out[23] += ax + x_ph * a[3] + x_de * a[4];
    out[24] += ay + y_ph * a[3] + y_de * a[4];
    out[25] += ax + x_om * a[5] + x_ep * a[6];
    out[26] += ay + y_om * a[5] + y_ep * a[6];
#endif
}
"""


_ANGLES = ("beta", "theta", "gamma", "phi", "delta", "omega", "epsilon")
_FORCES = tuple(f"lam{k}" for k in range(1, 7))


def _andrews(index: int) -> Residual:
    def fun(t: float, y: Vector, yp: Vector) -> list[float]:
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

        # mass matrix, with blocks of sizes 2, 1, 2 and 2
        m11, m12 = MASS_1 - 2 * COUPLING_2 * cos_th, MASS_2 - COUPLING_2 * cos_th
        m45, m55 = MASS_4 + COUPLING_4 * sin_ph, MASS_5 + 2 * COUPLING_4 * sin_ph
        m67, m77 = MASS_6 - COUPLING_6 * sin_om, MASS_7 - 2 * COUPLING_6 * sin_om

        # motor, spring and the terms with velocities
        xd = SD * cos_ga + SC * sin_ga + XB - XC
        yd = SD * sin_ga - SC * cos_ga + YB - YC
        spring = C0 * (L0 / math.sqrt(xd * xd + yd * yd) - 1)
        f1 = MOM - COUPLING_2 * v_th * (v_th + 2 * v_be) * sin_th
        f2 = COUPLING_2 * v_be * v_be * sin_th
        f3 = spring * (xd * (SC * cos_ga - SD * sin_ga) + yd * (SD * cos_ga + SC * sin_ga))
        f4 = COUPLING_4 * v_de * v_de * cos_ph
        f5 = -COUPLING_4 * v_ph * (v_ph + 2 * v_de) * cos_ph
        f6 = -COUPLING_6 * v_ep * v_ep * cos_om
        f7 = COUPLING_6 * v_om * (v_om + 2 * v_ep) * cos_om

        # derivatives of the loops' gaps with respect to the angles
        x_be, y_be = D * sin_bt - RR * sin_be, RR * cos_be - D * cos_bt
        x_th, y_th = D * sin_bt, -D * cos_bt
        x_ga, y_ga = -SS * cos_ga, -SS * sin_ga
        x_ph, y_ph = -E * cos_pd, -E * sin_pd
        x_de, y_de = ZT * sin_de + x_ph, -ZT * cos_de + y_ph
        x_om, y_om = ZF * sin_oe, -ZF * cos_oe
        x_ep, y_ep = x_om - U * cos_ep, y_om - U * sin_ep

        if index == 3:
            px, py = RR * cos_be - D * cos_bt, RR * sin_be - D * sin_bt
            gaps = [
                px - SS * sin_ga - XB,
                py + SS * cos_ga - YB,
                px - E * sin_pd - ZT * cos_de - XA,
                py + E * cos_pd - ZT * sin_de - YA,
                px - ZF * cos_oe - U * sin_ep - XA,
                py - ZF * sin_oe + U * cos_ep - YA,
            ]
        elif index == 2:
            px, py = x_be * v_be + x_th * v_th, y_be * v_be + y_th * v_th
            gaps = [
                px + x_ga * v_ga,
                py + y_ga * v_ga,
                px + x_ph * v_ph + x_de * v_de,
                py + y_ph * v_ph + y_de * v_de,
                px + x_om * v_om + x_ep * v_ep,
                py + y_om * v_om + y_ep * v_ep,
            ]
        else:
            bt, pd, oe = (v_be + v_th) ** 2, (v_ph + v_de) ** 2, (v_om + v_ep) ** 2
            px = x_be * w_be + x_th * w_th + D * cos_bt * bt - RR * cos_be * v_be**2
            py = y_be * w_be + y_th * w_th + D * sin_bt * bt - RR * sin_be * v_be**2
            gaps = [
                px + x_ga * w_ga + SS * sin_ga * v_ga**2,
                py + y_ga * w_ga - SS * cos_ga * v_ga**2,
                px + x_ph * w_ph + x_de * w_de + E * sin_pd * pd + ZT * cos_de * v_de**2,
                py + y_ph * w_ph + y_de * w_de - E * cos_pd * pd + ZT * sin_de * v_de**2,
                px + x_om * w_om + x_ep * w_ep + ZF * cos_oe * oe + U * sin_ep * v_ep**2,
                py + y_om * w_om + y_ep * w_ep + ZF * sin_oe * oe - U * cos_ep * v_ep**2,
            ]
        lx, ly = l1 + l3 + l5, l2 + l4 + l6
        return [
            yp[0] - v_be,
            yp[1] - v_th,
            yp[2] - v_ga,
            yp[3] - v_ph,
            yp[4] - v_de,
            yp[5] - v_om,
            yp[6] - v_ep,
            yp[7] - w_be,
            yp[8] - w_th,
            yp[9] - w_ga,
            yp[10] - w_ph,
            yp[11] - w_de,
            yp[12] - w_om,
            yp[13] - w_ep,
            m11 * w_be + m12 * w_th - f1 + x_be * lx + y_be * ly,
            m12 * w_be + MASS_2 * w_th - f2 + x_th * lx + y_th * ly,
            MASS_3 * w_ga - f3 + x_ga * l1 + y_ga * l2,
            MASS_4 * w_ph + m45 * w_de - f4 + x_ph * l3 + y_ph * l4,
            m45 * w_ph + m55 * w_de - f5 + x_de * l3 + y_de * l4,
            MASS_6 * w_om + m67 * w_ep - f6 + x_om * l5 + y_om * l6,
            m67 * w_om + m77 * w_ep - f7 + x_ep * l5 + y_ep * l6,
            *gaps,
        ]

    return fun


def andrews(index: int = 3) -> GalleryProblem:
    """Andrews' squeezing mechanism, driven by a motor: index 1, 2 or 3.

    Unknowns are seven angles, their velocities and accelerations and six multipliers, one for
    each coordinate in which one of three loops must close. At index 3 the loops are closed, at
    index 2 the velocities of their gaps vanish and at index 1 the accelerations.

    Parameters
    ----------
    index : {1, 2, 3}
        Index of the equations.

    Examples
    --------
    >>> from tether import gallery
    >>> problem = gallery.andrews()
    >>> problem.n, problem.index
    (27, 3)
    """
    check_index(index)
    y0 = np.zeros(27)
    y0[:7] = [
        -0.0617138900142764496,
        0.0,
        0.455279819163070380,
        0.222668390165885885,
        0.487364979543842550,
        -0.222668390165885885,
        1.23054744454982119,
    ]
    y0[14:16] = 14222.4439199541139, -10666.8329399655854
    y0[21:23] = 98.5668703962410896, -6.12268834425566266
    return GalleryProblem(
        name=f"andrews-i{index}",
        title=f"Andrews' squeezer, index {index}",
        description=(
            "Seven bodies in a plane, driven by a motor, with three closed loops."
        ),
        names=(*_ANGLES, *(f"v_{a}" for a in _ANGLES), *(f"a_{a}" for a in _ANGLES), *_FORCES),
        units=("rad",) * 7 + ("rad/s",) * 7 + ("rad/s2",) * 7 + ("N",) * 6,
        picture=("beta", "gamma"),
        reference_digits=12,
        expected_digits=5,
        fun=_andrews(index),
        t_span=(0.0, 0.03),
        y0=y0,
        yp0=np.concatenate([y0[7:21], np.zeros(13)]),
        reference=np.array(
            [
                15.81077119629904,
                -15.75637105984298,
                0.04082224013073101,
                -0.5347301163226948,
                0.5244099658805304,
                0.5347301163226948,
                1.048080741042263,
            ]
        ),
        source="Test Set for IVP Solvers, andrews (PSIDE, tolerance 1e-14), angles",
        atol_scale=np.ones(27),
        compare=tuple(range(7)),
        algebraic=tuple(range(14, 27)),
        index=index,
        c_source=with_index(ANDREWS_C, index),
    )
