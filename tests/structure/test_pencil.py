"""Local index, kinds of variables and mechanisms, from E = F_y' and A = F_y."""

import numpy as np
import pytest
from support.helpers import start_python
from support.pencils import (
    CAR_AXIS,
    amplifier,
    car_axis,
    chain,
    chain_with_state,
    double_pendulum,
    ggl_pendulum,
    hessenberg,
    jacobians,
    multibody,
    nilpotent,
    noisy,
    orthogonal,
    pendulum,
    random_kronecker,
    side_by_side,
    states,
    tall,
    transformed,
    wide,
)

from tether import gallery
from tether.structure.pencil import SHIFTS, local_pencil

SEEDS = 100
# With noise one case in a hundred may go wrong.
NOISY_SHARE = 0.99


# --- Index ------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(6))
def test_index_of_kronecker_forms(index):
    for seed in range(SEEDS):
        rng = np.random.default_rng([index, seed])
        E, A, dof = random_kronecker(rng, index)
        found = local_pencil(*transformed(rng, E, A))
        assert (found.index, found.singular, found.dof) == (index, False, dof), seed


@pytest.mark.parametrize("index", range(6))
def test_index_with_noise(index):
    right = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng([index, seed])
        E, A, dof = random_kronecker(rng, index)
        found = local_pencil(*noisy(rng, *transformed(rng, E, A)))
        right += (found.index, found.dof) == (index, dof)
    assert right >= NOISY_SHARE * SEEDS


def test_noise_needs_the_tolerance():
    """Without it noise is taken for structure, so that the tests with noise mean something."""
    rng = np.random.default_rng(0)
    E, A, _ = random_kronecker(rng, 3)
    E, A = noisy(rng, *transformed(rng, E, A))
    assert local_pencil(E, A).index == 3
    assert local_pencil(E, A, tolerance=1e-12).index != 3


@pytest.mark.parametrize("index", range(6))
def test_index_of_a_canonical_form(index):
    E, A = side_by_side(states(np.random.default_rng(0), 2), nilpotent(index))
    found = local_pencil(E, A)
    assert (found.index, found.dof) == (index, 2)


def test_only_algebraic_equations():
    found = local_pencil(np.zeros((2, 2)), [[1.0, 2.0], [3.0, 4.0]])
    assert (found.index, found.dof, found.var_index.tolist()) == (1, 0, [1, 1])


def test_local_index_of_a_moving_pencil_is_singular():
    """E(t) = [0 0; 1 eta t], A = [1 eta t; 0 1 + eta], eta = -1: index 2, not seen locally."""
    t = 0.3
    assert local_pencil([[0.0, 0.0], [1.0, -t]], [[1.0, -t], [0.0, 0.0]]).singular
    assert local_pencil([[0.0, 0.0], [1.0, t]], [[1.0, t], [0.0, 2.0]]).index == 2


@pytest.mark.parametrize("fast", [1e2, 1e4, 1e7, 1e10])
def test_fast_equations_are_differential(fast):
    """x' = -fast x + z, w' = x - w, 0 = x + w - z."""
    E = np.diag([1.0, 1.0, 0.0])
    A = np.array([[fast, 0.0, -1.0], [-1.0, 1.0, 0.0], [1.0, 1.0, -1.0]])
    found = local_pencil(E, A)
    assert (found.index, found.dof, found.var_index.tolist()) == (1, 2, [0, 0, 1])


@pytest.mark.parametrize("slow", [1e-3, 1e-6, 1e-10])
def test_slow_equations_count(slow):
    """x' = slow z, w' = z - w, 0 = x - g(t): a weak coupling determines z nevertheless."""
    E = np.diag([1.0, 1.0, 0.0])
    A = np.array([[0.0, 0.0, -slow], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    E, A = side_by_side((E, A), (np.eye(3), np.eye(3)))
    found = local_pencil(E, A)
    assert (found.index, found.dof, found.var_index.tolist()) == (2, 4, [0, 0, 2, 0, 0, 0])


def test_large_systems():
    rng = np.random.default_rng(0)
    E, A = transformed(rng, *side_by_side(states(rng, 100), *[nilpotent(3)] * 20))
    found = local_pencil(E, A)
    assert (found.index, found.dof) == (3, 100)


# --- Singular pencils -------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 1e-8])
@pytest.mark.parametrize(("wide_size", "tall_size"), [(0, 0), (1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("index", [None, 0, 1, 3])
def test_singular_pencils(wide_size, tall_size, index, noise):
    right = 0
    for seed in range(50):
        rng = np.random.default_rng([wide_size, tall_size, seed])
        blocks = [wide(wide_size), tall(tall_size)]
        if index is not None:
            blocks.append(random_kronecker(rng, index, 10)[:2])
        E, A = noisy(rng, *transformed(rng, *side_by_side(*blocks)), noise)
        found = local_pencil(E, A)
        right += found.singular
        assert found.singular == (found.index is None)
    assert right >= (50 if noise == 0.0 else NOISY_SHARE * 50)


@pytest.mark.parametrize("noise", [0.0, 1e-8])
def test_repeated_equation(noise):
    """Row 2 is twice row 5 of an index-1 system; nothing else depends on anything."""
    rng = np.random.default_rng(1)
    E, A = hessenberg(rng, 1, nx=4, m=3)
    E, A = noisy(rng, E, A, noise)
    E[2], A[2] = 2 * E[5], 2 * A[5]
    found = local_pencil(E, A)
    assert found.singular
    assert found.dependent == (2, 5)
    assert (found.index, found.dof, found.mechanical, found.prescribed) == (None, 0, False, ())


def test_several_repeated_equations():
    pair = np.zeros((2, 2)), np.ones((2, 2))
    found = local_pencil(*side_by_side(pair, pair, (np.eye(1), np.eye(1)), pair, pair))
    assert (found.singular, found.dependent) == (True, (0, 1, 2, 3, 5, 6, 7, 8))
    assert found.undetermined == found.dependent


def test_eigenvalues_depend_on_nothing():
    """y' = s y beside two equal equations: s E + A loses more rank there, the pencil does not."""
    for shift in SHIFTS:
        growing = np.eye(4), np.diag([-shift, 1.0, 1.0, 1.0])
        found = local_pencil(*side_by_side(growing, (np.zeros((2, 2)), np.ones((2, 2)))))
        assert (found.dependent, found.undetermined) == ((4, 5), (4, 5))


def test_differentiated_equation():
    """0 = x + w and 0 = x' + w' depend on each other through the derivative."""
    E = [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    found = local_pencil(E, [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    assert found.singular
    assert found.dependent == (0, 1)


def test_variable_that_occurs_nowhere():
    rng = np.random.default_rng(2)
    E, A = hessenberg(rng, 1, nx=4, m=3)
    E[:, 5] = A[:, 5] = 0.0
    found = local_pencil(E, A)
    assert found.singular
    assert found.undetermined == (5,)
    # The three algebraic equations hold too much of the other two unknowns.
    assert len(found.dependent) >= 3


def test_two_variables_that_occur_only_as_a_sum():
    rng = np.random.default_rng(3)
    E, A = hessenberg(rng, 1, nx=4, m=3)
    E[:, 1], A[:, 1] = 3 * E[:, 6], 3 * A[:, 6]
    found = local_pencil(E, A)
    assert found.singular
    assert found.undetermined == (1, 6)


def test_regular_pencils_name_nothing():
    found = local_pencil(*pendulum(0.4))
    assert not found.singular
    assert (found.dependent, found.undetermined) == ((), ())


# --- Kinds of variables -----------------------------------------------------------------------

KINDS = {
    "index 0": (lambda rng: states(rng, 4), [0] * 4),
    "index 1": (lambda rng: hessenberg(rng, 1), [0] * 6 + [1] * 3),
    "index 2": (lambda rng: hessenberg(rng, 2), [0] * 6 + [2] * 3),
    "ggl": (lambda rng: ggl_pendulum(rng.uniform(0.1, 1.4)), [0, 0, 0, 0, 2, 2]),
    "pendulum": (lambda rng: pendulum(rng.uniform(0.1, 1.4)), [0, 0, 2, 2, 3]),
    "multibody": (multibody, [0] * 5 + [2] * 5 + [3] * 2),
    "amplifier": (lambda rng: amplifier(), [0, 0, 0]),
    "chain 3": (lambda rng: chain(3), [3, 2, 0]),
    "chain 5": (lambda rng: chain(5), [5, 4, 3, 2, 0]),
    "chain with state": (lambda rng: chain_with_state(), [3, 2, 0, 2]),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("mixed", [False, True], ids=["as written", "mixed rows"])
@pytest.mark.parametrize("noise", [0.0, 1e-8])
def test_kinds_of_variables(name, mixed, noise):
    make, kinds = KINDS[name]
    right = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        E, A = make(rng)
        if mixed:
            rows = orthogonal(rng, len(E))
            E, A = rows @ E, rows @ A
        found = local_pencil(*noisy(rng, E, A, noise))
        right += found.var_index.tolist() == kinds
    assert right >= (SEEDS if noise == 0.0 else NOISY_SHARE * SEEDS)


def test_accelerations_count_with_the_multipliers():
    """x' = v, v' = a, a + x + lam c = 0 for three bodies, 0 = c x."""
    rng = np.random.default_rng(0)
    c = rng.standard_normal(3)
    E = np.diag([1.0] * 6 + [0.0] * 4)
    A = np.zeros((10, 10))
    A[:3, 3:6] = A[3:6, 6:9] = -np.eye(3)
    A[6:9, :3] = A[6:9, 6:9] = np.eye(3)
    A[6:9, 9] = A[9, :3] = c
    found = local_pencil(E, A)
    assert found.var_index.tolist() == [0] * 3 + [2] * 3 + [3] * 4
    assert found.mechanical


def growth(E, A, g):
    """Length of the rows of (E + g A)^-1 E."""
    return np.linalg.norm(np.linalg.solve(E + g * A, E), axis=1)


@pytest.mark.parametrize("name", KINDS)
def test_kinds_say_how_fast_errors_grow(name):
    """Rows of (E + g A)^-1 E grow like g^-(v - 1): orders of magnitude from decade to decade."""
    make, _ = KINDS[name]
    for seed in range(10):
        E, A = make(np.random.default_rng(seed))
        expected = np.maximum(local_pencil(E, A).var_index - 1, 0)
        for g in (1e-3, 1e-4):
            if g ** len(set(expected)) < 1e-13:
                continue  # E + g A is singular to working precision
            slopes = np.log10((growth(E, A, g / 10) + 1e-9) / (growth(E, A, g) + 1e-9))
            assert np.all(np.abs(np.maximum(slopes, 0.0) - expected) < 0.2), (seed, g)


@pytest.mark.parametrize("index", [2, 3, 4])
def test_growth_in_dense_pencils(index):
    """All variables hold the worst derivative once the variables are mixed."""
    for seed in range(20):
        rng = np.random.default_rng([index, seed])
        E, A, _ = random_kronecker(rng, index, 12)
        found = local_pencil(*transformed(rng, E, A))
        assert set(found.var_index.tolist()) == {index}
        assert not found.mechanical


# --- Mechanisms -------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 1e-8])
def test_pendulum_is_a_mechanism(noise):
    right = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        E, A = pendulum(rng.uniform(0.0, 2 * np.pi), rng.uniform(-3.0, 3.0))
        found = local_pencil(*noisy(rng, E, A, noise))
        right += (found.index, found.mechanical, found.prescribed) == (3, True, ())
    assert right >= (SEEDS if noise == 0.0 else NOISY_SHARE * SEEDS)


def test_mechanism_with_mixed_rows():
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        E, A = pendulum(rng.uniform(0.0, 2 * np.pi), rng.uniform(-3.0, 3.0))
        rows = orthogonal(rng, 5)
        found = local_pencil(rows @ E, rows @ A)
        assert (found.index, found.mechanical) == (3, True), seed


@pytest.mark.parametrize("seed", range(10))
def test_mechanisms_by_differences(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(0.0, 2 * np.pi, 2)
    q = np.array([np.cos(first), np.sin(first)] * 2)
    q[2:] += np.cos(second), np.sin(second)
    y = np.concatenate([q, rng.standard_normal(4), rng.uniform(1.0, 10.0, 2)])
    found = local_pencil(*jacobians(double_pendulum, 0.0, y, np.zeros(10)))
    assert (found.index, found.dof, found.mechanical) == (3, 4, True)
    assert found.var_index.tolist() == [0] * 4 + [2] * 4 + [3] * 2

    y = CAR_AXIS + 0.05 * rng.standard_normal(10)
    found = local_pencil(*jacobians(car_axis, 0.1, y, np.zeros(10)))
    assert (found.index, found.dof, found.mechanical) == (3, 4, True)
    assert found.var_index.tolist() == [0] * 4 + [2] * 4 + [3] * 2


def test_dense_mechanisms():
    for seed in range(SEEDS):
        found = local_pencil(*multibody(np.random.default_rng(seed)))
        assert (found.index, found.dof, found.mechanical) == (3, 6, True), seed


@pytest.mark.parametrize("noise", [0.0, 1e-8])
@pytest.mark.parametrize("make", [chain, chain_with_state])
def test_derivatives_of_something_given_are_no_mechanism(make, noise):
    for seed in range(20):
        found = local_pencil(*noisy(np.random.default_rng(seed), *make(), noise))
        assert (found.index, found.mechanical, found.prescribed) == (3, False, (0,))


def test_index_2_driven_by_a_derivative_is_no_mechanism():
    """0 = p - g(t), p' = w, and x' = a x + b z, 0 = c x - w of index 2: z holds g''."""
    rng = np.random.default_rng(0)
    drive = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, -1.0]])
    E, A = side_by_side(drive, hessenberg(rng, 2))
    A[-3:, 1] = -1.0
    found = local_pencil(E, A)
    assert (found.index, found.mechanical, found.prescribed) == (3, False, (8, 9, 10))


def test_dense_transformation_of_a_chain_is_no_mechanism():
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        found = local_pencil(*transformed(rng, *chain()))
        assert (found.index, found.mechanical, found.prescribed) == (3, False, (0, 1, 2))


def test_mechanism_beside_a_chain():
    """The one variable that is prescribed is named, the multiplier is not."""
    found = local_pencil(*side_by_side(pendulum(0.7), chain()))
    assert (found.index, found.mechanical, found.prescribed) == (3, False, (5,))


def test_two_pendulums():
    found = local_pencil(*side_by_side(pendulum(0.7), pendulum(2.1)))
    assert (found.index, found.mechanical, found.dof) == (3, True, 4)


@pytest.mark.parametrize("index", [0, 1, 2, 4, 5])
def test_only_index_3_is_mechanical(index):
    rng = np.random.default_rng(index)
    E, A = side_by_side(states(rng, 2), nilpotent(index))
    found = local_pencil(E, A)
    assert not found.mechanical
    assert len(found.prescribed) == max(index - 2, 0)


@pytest.mark.parametrize("angle", [0.0, 1.5 * np.pi])
def test_entries_that_vanish_at_the_point(angle):
    """Where a rod lies along an axis the multiplier looks prescribed; a small shift shows more."""
    E, A = pendulum(angle)
    A[np.abs(A) < 1e-12] = 0.0
    found = local_pencil(E, A)
    assert (found.index, found.mechanical) == (3, False)
    assert found.prescribed == (4,)
    assert local_pencil(*pendulum(angle + 1e-3)).mechanical


# --- Units ------------------------------------------------------------------------------------


def facts(found):
    return (
        found.index, found.singular, found.dof, found.var_index.tolist(),
        found.mechanical, found.dependent, found.undetermined, found.prescribed,
    )


@pytest.mark.parametrize("name", KINDS)
def test_units_do_not_matter(name):
    make, _ = KINDS[name]
    for seed in range(30):
        rng = np.random.default_rng(seed)
        E, A = make(rng)
        rows = 10.0 ** rng.uniform(-8, 8, len(E))[:, None]
        sizes = 10.0 ** rng.uniform(-6, 6, len(E))
        expected = facts(local_pencil(E, A))
        assert facts(local_pencil(rows * E / sizes, rows * A / sizes, scale=sizes)) == expected
        for time_unit in (1e-12, 1e12):
            assert facts(local_pencil(time_unit * E, A)) == expected


def test_units_of_a_singular_pencil():
    rng = np.random.default_rng(4)
    E, A = hessenberg(rng, 1, nx=4, m=3)
    E[2], A[2] = E[5], A[5]
    rows = 10.0 ** rng.uniform(-8, 8, 7)[:, None]
    sizes = 10.0 ** rng.uniform(-6, 6, 7)
    found = local_pencil(rows * E / sizes, rows * A / sizes, scale=sizes)
    assert (found.singular, found.dependent) == (True, (2, 5))


@pytest.mark.parametrize("name", KINDS)
def test_order_does_not_matter(name):
    make, _ = KINDS[name]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        E, A = make(rng)
        rows, columns = rng.permutation(len(E)), rng.permutation(len(E))
        expected, part = local_pencil(E, A), np.ix_(rows, columns)
        found = local_pencil(E[part], A[part])
        assert (found.index, found.mechanical) == (expected.index, expected.mechanical)
        assert found.var_index.tolist() == expected.var_index[columns].tolist()
        assert sorted(columns[list(found.prescribed)]) == list(expected.prescribed)


# --- Problems of the gallery ------------------------------------------------------------------

GALLERY = [name for name in gallery.names("classic") if gallery.get(name).n <= 200]


@pytest.mark.parametrize("name", GALLERY)
def test_gallery(name):
    problem = gallery.get(name)
    # A point and a time where no entry vanishes by chance, inside the domain of the residual.
    rng = np.random.default_rng(0)
    size = np.maximum(np.abs(problem.y0), 0.1 * problem.atol_scale)
    y = problem.y0 + 0.01 * size * rng.uniform(0.1, 1.0, problem.n)
    t = problem.t_span[0] + 0.01 * (problem.t_span[1] - problem.t_span[0])
    found = local_pencil(*jacobians(problem.fun, t, y, problem.yp0))
    assert found.index == problem.index
    assert tuple(np.flatnonzero(found.var_index == max(problem.index, 1))) == problem.algebraic
    assert found.mechanical == (problem.index == 3)


# --- Use --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("E", "A", "scale", "message"),
    [
        (np.eye(2), np.eye(3), None, "square and alike"),
        (np.ones((2, 3)), np.ones((2, 3)), None, "square and alike"),
        (np.ones(2), np.ones(2), None, "square and alike"),
        (np.eye(2), np.diag([1.0, np.nan]), None, "finite"),
        (np.eye(2), np.eye(2), [1.0], "2 positive numbers"),
        (np.eye(2), np.eye(2), [1.0, 0.0], "2 positive numbers"),
        (np.eye(2), np.eye(2), [1.0, np.inf], "2 positive numbers"),
    ],
)
def test_wrong_arguments(E, A, scale, message):
    with pytest.raises(ValueError, match=message):
        local_pencil(E, A, scale=scale)


def test_arguments_are_left_alone():
    E, A = pendulum(0.7)
    scale = np.full(5, 2.0)
    kept = E.copy(), A.copy(), scale.copy()
    local_pencil(E, A, scale=scale)
    for before, after in zip(kept, (E, A, scale), strict=True):
        np.testing.assert_array_equal(before, after)


def test_import_is_light():
    process = start_python(
        "import sys, tether.structure.pencil\n"
        "print([name for name in ('scipy.linalg', 'scipy.sparse') if name in sys.modules])\n"
    )
    assert process.communicate() == ("[]\n", "")
