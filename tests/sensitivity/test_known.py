"""Derivatives of whole runs against values from elsewhere: impacts, mechanisms, circuits.

The numbers were computed in other coordinates with the explicit method DOP853 at a relative
tolerance of 1e-13 and a step of 1e-30 i in each parameter (complex step); at impacts and switches
the imaginary part of the time is found from the function that is zero there.
"""

import numpy as np
import pytest
from support.derivatives import (
    FINE,
    TIGHT,
    adjoint_error,
    amplifier,
    at_wall,
    bridge,
    differences,
    largest_error,
    pendulum,
    slider_crank,
    stick_slip,
)

from tether import solve_dae

ANGLE = 0.6435011087932844                     # 3-4-5 triangle
PENDULUM = {
    "t_span": (0, 3), "y0": [np.sin(ANGLE), -np.cos(ANGLE), 0.0, 0.0, 0.0],
    "args": (9.81, 1.0, 1.3, 0.8, -0.3), "t_eval": [3.0], "start": "quiet",
}
# in the angle as the only coordinate, with two impacts; by g, length, m, e and wall
PENDULUM_SENS = np.array([
    [-0.1093011696575852, -0.04604907550485159, -0.6088478520217959, -0.15667890102953383,
     3.0395428662495942],
    [0.7897413510163184, -0.7524039721224417, 2.3943821480801755, 0.6420611789498055,
     -20.426914068028562],
    [0.0, 0.0, 0.0, 0.0, 9.642107784199203],
    [0.03666931095279098, 0.015448946009140626, -3.4823548173818515, -1.50062410755721,
     7.450151234753866],
    [-2.235857592204121, -0.9419768828096723, -9.545285434438032, -1.979326287319458,
     31.303338166266514],
])
PENDULUM_TIMES = np.array([
    [-0.0344171604047041, 0.15667490408660617, 0.0, 0.0, -0.6031914649451366],
    [-0.10610232378611349, 0.4543935890045452, 0.0, -0.3399696873167672, -1.954900691124092],
])


def close(found, right, tolerance):
    """Compare derivatives, relative to the largest by the same parameter (one row each)."""
    size = np.abs(right).max(axis=1, keepdims=True)
    return np.all(np.abs(found - right) <= tolerance * np.maximum(size, 1e-2 * size.max()))


def test_pendulum_with_impacts():
    sol = solve_dae(pendulum, events=[at_wall()], sensitivity="args", **PENDULUM, **FINE)
    assert len(sol.t_events[0]) == 2
    assert close(sol.sens[:, :, 0], PENDULUM_SENS, 1e-6)
    assert close(sol.sensitivities.t_events[0].T, PENDULUM_TIMES.T, 1e-6)
    # at an impact the unknown that decides about its time stays at the wall
    assert np.allclose(sol.sensitivities.y_events[0][:, :, 0], [[0, 0, 0, 0, 1]] * 2, atol=1e-7)


def test_errors_fall_with_the_tolerance():
    errors = []
    for rtol in (1e-5, 1e-7, 1e-9):
        sol = solve_dae(
            pendulum, events=[at_wall()], sensitivity="args", rtol=rtol, atol=rtol / 100, **PENDULUM
        )
        errors.append(np.max(np.abs(sol.sens[:, :, 0] - PENDULUM_SENS)))
    assert errors[1] < errors[0] / 20
    assert errors[2] < errors[1] / 20


def test_slider_crank():
    r, rod, angle, speed = 0.4, 1.0, 0.3, 2.0
    x, z = r * np.cos(angle), r * np.sin(angle)
    width = np.sqrt(rod**2 - z**2)
    y0 = [x, z, x + width, -z * speed, x * speed, -(z + x * z / width) * speed, 0.0, 0.0]
    sol = solve_dae(
        slider_crank, (0, 0.8), y0, args=(r, rod, 0.5, 1.2, 0.3, 2.0), t_eval=[0.8], start="quiet",
        sensitivity=["m1", "m2", "torque", "k"], **FINE,
    )
    right = np.array([                         # in the angle of the crank
        [-0.13341795465404097, 0.6980362724721076, -0.08085123106209764, -6.03075892510481,
         1.1556099557228272, -3.7227913337302097],
        [-0.09260968820953609, 0.48452940026112656, -0.05612143672441796, -3.806873731590783,
         -1.182175056172269, -2.3542717153923336],
        [0.17499061194266577, -0.9155424005323096, 0.1060442459679531, 7.534037569093458,
         0.4509371228506905, 4.655014122625422],
        [0.062671709797832, -0.3278953481948563, 0.0379790329049822, 2.6617083348666517,
         0.35276197634505224, 1.6450087442741383],
    ])
    assert close(sol.sens[:, :6, 0], right, 1e-6)


def test_amplifier_with_a_source_that_is_switched_on():
    sol = solve_dae(
        amplifier, (0, 0.02), [0, 3, 3, 6, 0], args=(1e-6, 6.0, 1000.0, 0.0041, 0.1),
        t_eval=[0.012, 0.02], start="quiet", sensitivity="args", **FINE,
    )
    right = np.array([                         # in the charges, with Newton's method for the nodes
        [[7.815745606998068, 1.842032132504103], [-159.40515080292118, -136.48560414369928],
         [25549.57255775493, 25620.549937073003], [-18069.747338163746, -19418.63350668385],
         [-6528.6431849793335, -5964.2654837072405]],
        [[0.010364729219594469, 0.002453078431678749], [0.4504238642904995, 0.4863642988456043],
         [0.44537696763367945, 0.4827213732224074], [0.21452311911173602, 0.2786141319197175],
         [0.20437574506585698, 0.20720992213576703]],
        [[-1.5982183861017025e-05, -4.155704487450454e-06],
         [-1.3202720654065641e-05, -7.217536305387587e-06],
         [-1.3369036906129378e-05, -6.252138168772965e-06],
         [-7.29771662378613e-06, 6.908848071709028e-05],
         [-1.1851984579102744e-05, 6.717136959280474e-05]],
        [[-0.4128300448798403, -0.09771125568539596], [1.8786853182476253, 0.44476539687523087],
         [1.9147120043730754, 0.45187035355085015], [1.8305681843025434, 0.44379560450037464],
         [2.317554840789699, 0.5590241611075141]],
        [[0.7656419506953711, -0.05829420144203743], [0.8255429190969019, 0.219168769550319],
         [0.8103711664913995, 0.15862963083198522], [-1.0056845033542476, -4.29257440320561],
         [-0.7411954648654662, -4.252142710686107]],
    ])
    size = np.abs(right).max(axis=(1, 2), keepdims=True)
    assert np.max(np.abs(sol.sens - right) / size) < 1e-6


def test_bridge_of_ideal_diodes():
    def values(x, **options):
        return solve_dae(
            bridge, (0, 3), [0.1, 0, 0], args=tuple(x), t_eval=[0.5, 1.6, 2.93], start="quiet",
            **options,
        )

    x = [5.0, 0.3, 1.0, 4.0]
    right = differences(lambda x: values(x, **TIGHT).y, x, 1e-4)
    sol = values(x, sensitivity="args", **FINE)
    assert largest_error(sol.sens[:, :1], right[:, :1]) < 1e-6
    assert np.abs(sol.sens[:, 1:]).max() < 1e-12               # both diodes block at these times


def test_stick_slip():
    sol = solve_dae(
        stick_slip, (0, 7.9), [1.0, 0.0], args=(1.0, 4.0, 1.0, 0.5), t_eval=[7.9],
        sensitivity="all", **FINE,
    )
    right = np.array([                         # from the sines that the motion consists of
        [1.601330292364981, -1.1569045990035856], [-0.5541181092095094, 0.3535101541144202],
        [0.6151421444730569, -0.2571360174540953], [-1.0462582686793267, -0.32339448376460866],
        [0.07495753075566235, -0.052785692444565484], [0.15720631726032172, -0.11070594548125873],
    ])
    assert close(sol.sens[:4, :, 0], right[:4], 1e-6)
    assert np.abs(sol.sens[4:, :, 0] - right[4:]).max() < 1e-6  # by y0, where it began with 1


@pytest.mark.parametrize("system", ["pendulum", "amplifier", "bridge", "friction"])
def test_the_way_back_gives_the_same(system):
    case = {
        "pendulum": (pendulum, (0, 3), PENDULUM["y0"], {
            "events": [at_wall()], "args": PENDULUM["args"], "t_eval": [1.0, 3.0]}),
        "amplifier": (amplifier, (0, 0.02), [0, 3, 3, 6, 0], {
            "args": (1e-6, 6.0, 1000.0, 0.0041, 0.1), "t_eval": [0.003, 0.012, 0.02]}),
        "bridge": (bridge, (0, 3), [0.1, 0, 0], {
            "args": (5.0, 0.3, 1.0, 4.0), "t_eval": [0.5, 1.6, 2.93]}),
        "friction": (stick_slip, (0, 7.9), [1.0, 0.0], {
            "args": (1.0, 4.0, 1.0, 0.5), "t_eval": [1.0, 4.0, 7.9]}),
    }
    fun, t_span, y0, options = case[system]
    assert adjoint_error(fun, t_span, y0, "all", start="quiet", **options, **FINE) < 1e-10
