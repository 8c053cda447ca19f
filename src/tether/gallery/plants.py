"""Process plants: tanks, drums, columns, pipes and a battery."""

import math

import numpy as np

from tether.gallery.base import GalleryProblem, Vector


def _neutralisation(t: float, y: Vector, yp: Vector) -> list[float]:
    acid, base, ph = y
    volume, acid_flow, dissociation, water = 1.0, 0.010, 1.8e-5, 1e-14
    base_flow = 0.009 if t < 300.0 else 0.011
    flow = acid_flow + base_flow
    hydrogen = 10.0**-ph
    return [
        volume * yp[0] - (0.1 * acid_flow - flow * acid),
        volume * yp[1] - (0.1 * base_flow - flow * base),
        hydrogen + base - water / hydrogen - acid * dissociation / (dissociation + hydrogen),
    ]


def neutralisation() -> GalleryProblem:
    """Neutralisation of acetic acid by sodium hydroxide in a stirred tank: index 1.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.neutralisation().units
    ('mol/l', 'mol/l', '')
    """
    return GalleryProblem(
        name="neutralisation",
        title="pH neutralisation",
        description=(
            "Acetic acid and sodium hydroxide flow into a stirred tank, after five minutes a "
            "little more of the base than of the acid. The balance of charges is an equation for "
            "the pH alone, which rises steeply where the acid is used up."
        ),
        fun=_neutralisation,
        t_span=(0.0, 600.0),
        y0=np.array([0.1, 0.0, 2.8752770603192666]),
        names=("acid", "base", "pH"),
        units=("mol/l", "mol/l", ""),
        picture=("pH",),
        reference=np.array([0.04762854319591, 0.05237145680409, 11.67604572512]),
        source="exact: exponentials, and a root for the pH by mpmath",
        reference_digits=13,
        expected_digits=6,
        atol_scale=np.array([0.1, 0.1, 1.0]),
        algebraic=(2,),
    )


def _vapour_pressure(temperature: float, a: float, b: float, c: float) -> float:
    """Antoine's equation in kPa and degrees Celsius, with coefficients for mmHg."""
    return 101.325 / 760.0 * 10.0 ** (a - b / (c + temperature))


def _flash_drum(t: float, y: Vector, yp: Vector) -> list[float]:
    holdup, benzene, x, vapour_x, temperature, vapour, liquid = y
    feed, pressure, latent_heat, heat = 10.0, 101.325, 32.0, 150.0
    feed_x = 0.5 if t < 5.0 else 0.4
    p1 = _vapour_pressure(temperature, 6.90565, 1211.033, 220.79)
    p2 = _vapour_pressure(temperature, 6.95464, 1344.8, 219.482)
    return [
        yp[0] - (feed - vapour - liquid),
        yp[1] - (feed * feed_x - vapour * vapour_x - liquid * x),
        holdup * x - benzene,
        vapour_x * pressure - x * p1,
        x * p1 + (1.0 - x) * p2 - pressure,
        latent_heat * vapour - heat,
        liquid - 1.2 * math.sqrt(holdup),
    ]


def flash_drum() -> GalleryProblem:
    """Flash drum for benzene and toluene: index 1.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.flash_drum().names[4]
    'temperature'
    """
    return GalleryProblem(
        name="flash-drum",
        title="Flash drum",
        description=(
            "A boiling mixture of benzene and toluene is split into vapour and liquid; after "
            "five minutes the feed has less benzene. Equilibrium (Antoine, Raoult) determines "
            "temperature and composition of the vapour together."
        ),
        fun=_flash_drum,
        t_span=(0.0, 30.0),
        y0=np.array(
            [20.0, 8.0, 0.4, 0.6218490498835141, 95.14169957643175, 4.6875, 1.2 * math.sqrt(20.0)]
        ),
        names=("holdup", "benzene", "x", "vapour_x", "temperature", "vapour", "liquid"),
        units=("kmol", "kmol", "", "", "°C", "kmol/min", "kmol/min"),
        picture=("x", "vapour_x"),
        reference=np.array(
            [
                19.60597653488,
                5.900011971353,
                0.3009292580177,
                0.5122803687028,
                98.42429696587,
                4.6875,
                5.313436384321,
            ]
        ),
        source="SciPy's DOP853 for both holdups, temperature by a root, restarted at 5 min, 1e-12",
        reference_digits=10,
        expected_digits=6,
        atol_scale=np.ones(7),
        algebraic=(2, 3, 4, 5, 6),
    )


# By number of trays: composition on all stages, from the condenser down, at the end.
_COLUMN_ENDS: dict[int, tuple[float, ...]] = {
    20: (
        0.9508252219964,
        0.9001698900238,
        0.8329364354471,
        0.7505529537893,
        0.6590896341359,
        0.5681041599652,
        0.4869915694149,
        0.4214575119166,
        0.3725907186669,
        0.338283399996,
        0.3151989361572,
        0.3001014881329,
        0.2308834316291,
        0.1684927225288,
        0.1174409060385,
        0.07887268209223,
        0.05145676038869,
        0.03280086694244,
        0.02048004447706,
        0.01250302322567,
        0.007404615138308,
        0.004172970849646,
    ),
}


def distillation(trays: int = 20) -> GalleryProblem:
    """Binary distillation column of equilibrium stages: index 1.

    Parameters
    ----------
    trays : int
        Number of trays between condenser and reboiler, at least 3; 20 has a reference.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.distillation(trays=5).n
    14
    """
    if trays < 3:
        raise ValueError(f"trays must be at least 3, got {trays!r}")
    stages = trays + 2
    feed_stage = stages // 2
    volatility, feed, distillate, reflux = 2.0, 1.0, 0.5, 1.5
    above, below = reflux, reflux + feed
    boiled = reflux + distillate

    def fun(t: float, y: Vector, yp: Vector) -> list[float]:
        x, vapour = y[:stages], y[stages:]
        feed_x = 0.5 if t < 10.0 else 0.45
        rates = [5.0 * yp[0] - boiled * (vapour[1] - x[0])]
        for k in range(1, stages - 1):
            liquid_in = above if k <= feed_stage else below
            liquid_out = above if k < feed_stage else below
            gain = liquid_in * x[k - 1] - liquid_out * x[k]
            if k == feed_stage:
                gain += feed * feed_x
            rates.append(0.5 * yp[k] - gain - boiled * (vapour[k + 1] - vapour[k]))
        bottom = below - boiled
        rates.append(
            5.0 * yp[stages - 1] - below * x[stages - 2] + bottom * x[-1] + boiled * vapour[-1]
        )
        equilibria = [
            vapour[k] * (1.0 + (volatility - 1.0) * x[k]) - volatility * x[k] for k in range(stages)
        ]
        return rates + equilibria

    x0 = np.full(stages, 0.5)
    return GalleryProblem(
        name="distillation",
        title="Distillation column",
        description=(
            "A column starts with the feed on every tray and separates it; after ten minutes "
            "the feed changes. On every stage vapour and liquid are in equilibrium; their flows "
            "do not change from tray to tray except at the feed."
        ),
        fun=fun,
        t_span=(0.0, 60.0),
        y0=np.concatenate([x0, volatility * x0 / (1.0 + (volatility - 1.0) * x0)]),
        names=(*(f"x{k}" for k in range(stages)), *(f"y{k}" for k in range(stages))),
        units=("",) * 2 * stages,
        picture=("x0", f"x{stages // 4}", f"x{feed_stage}", f"x{stages - 1}"),
        reference=np.array(_COLUMN_ENDS.get(trays, [math.nan] * stages)),
        compare=tuple(range(stages)),
        source="SciPy's Radau for the liquid alone, restarted at 10 min, tolerance 1e-12",
        reference_digits=10,
        expected_digits=6,
        atol_scale=np.ones(2 * stages),
        algebraic=tuple(range(stages, 2 * stages)),
    )


# By shells per particle: shares of lithium at both surfaces and the voltage, at the end.
_BATTERY_ENDS: dict[int, tuple[float, ...]] = {
    10: (0.3679999881513, 0.778, 3.387627529513),
    20: (0.3679999898552, 0.778, 3.387627529788),
}


def battery(shells: int = 10) -> GalleryProblem:
    """Lithium-ion cell by the single particle model: index 1.

    Parameters
    ----------
    shells : int
        Finite volumes in each particle, at least 3; 10 and 20 have a reference.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.battery().names[-3:]
    ('eta_n', 'eta_p', 'voltage')
    """
    if shells < 3:
        raise ValueError(f"shells must be at least 3, got {shells!r}")
    edges = np.linspace(0.0, 1.0, shells + 1)
    volumes = ((edges[1:] ** 3 - edges[:-1] ** 3) / 3).tolist()
    areas = (edges**2).tolist()
    width = 1.0 / shells
    # diffusivity over squared radius, 1/s
    speed_n, speed_p = 4e-4, 1e-3
    # share of lithium that the current moves through a unit of surface per second
    flux_n, flux_p = 8e-5, 7e-5
    thermal = 0.0257

    def open_n(share: float) -> float:
        return 0.15 + 0.6 * math.exp(-20.0 * share) - 0.05 * math.tanh(8.0 * share - 4.0)

    def open_p(share: float) -> float:
        return 4.2 - 0.8 * share - 0.3 * math.exp(30.0 * (share - 1.0))

    def diffusion(c: Vector, dc: Vector, speed: float, outflow: float) -> list[float]:
        flows = [0.0]
        flows += [speed * areas[k] * (c[k - 1] - c[k]) / width for k in range(1, shells)]
        flows.append(outflow)
        return [volumes[k] * dc[k] - (flows[k] - flows[k + 1]) for k in range(shells)]

    def fun(t: float, y: Vector, yp: Vector) -> list[float]:
        c_n, c_p = y[:shells], y[shells : 2 * shells]
        surface_n, surface_p, eta_n, eta_p, voltage = y[2 * shells :]
        load = 1.0 if t < 1800.0 else 0.0
        exchange_n = 2.0 * math.sqrt(surface_n * (1.0 - surface_n))
        exchange_p = 1.5 * math.sqrt(surface_p * (1.0 - surface_p))
        return [
            *diffusion(c_n, yp[:shells], speed_n, flux_n * load),
            *diffusion(c_p, yp[shells : 2 * shells], speed_p, -flux_p * load),
            surface_n - c_n[-1] + 0.5 * width * flux_n * load / speed_n,
            surface_p - c_p[-1] - 0.5 * width * flux_p * load / speed_p,
            load - 2.0 * exchange_n * math.sinh(eta_n / (2 * thermal)),
            load + 2.0 * exchange_p * math.sinh(eta_p / (2 * thermal)),
            voltage - (open_p(surface_p) + eta_p - open_n(surface_n) - eta_n - 0.02 * load),
        ]

    surfaces = (0.8 - 0.5 * width * flux_n / speed_n, 0.4 + 0.5 * width * flux_p / speed_p)
    exchanges = [k * math.sqrt(s * (1.0 - s)) for k, s in zip((2.0, 1.5), surfaces, strict=True)]
    potentials = [
        sign * 2 * thermal * math.asinh(0.5 / exchange)
        for sign, exchange in zip((1.0, -1.0), exchanges, strict=True)
    ]
    voltage = open_p(surfaces[1]) + potentials[1] - open_n(surfaces[0]) - potentials[0] - 0.02
    return GalleryProblem(
        name="battery",
        title="Battery cell",
        description=(
            "A lithium-ion cell is discharged for half an hour and then rests. Lithium diffuses "
            "in one particle of each electrode; the overpotentials follow from the current "
            "(Butler and Volmer) and give the voltage."
        ),
        fun=fun,
        t_span=(0.0, 3600.0),
        y0=np.array([0.8] * shells + [0.4] * shells + [*surfaces, *potentials, voltage]),
        names=(
            *(f"cn{k}" for k in range(1, shells + 1)), *(f"cp{k}" for k in range(1, shells + 1)),
            "surface_n", "surface_p", "eta_n", "eta_p", "voltage",
        ),
        units=("",) * (2 * shells + 2) + ("V",) * 3,
        picture=("voltage",),
        reference=np.array(_BATTERY_ENDS.get(shells, [math.nan] * 3)),
        compare=(2 * shells, 2 * shells + 1, 2 * shells + 4),
        source="exact: matrix exponentials for the diffusion, then the voltage by its formula",
        reference_digits=12,
        expected_digits=6,
        atol_scale=np.ones(2 * shells + 5),
        algebraic=tuple(range(2 * shells, 2 * shells + 5)),
    )  # fmt: skip


def _pipe_network(t: float, y: Vector, yp: Vector) -> list[float]:
    main, left, right, inlet, node = y
    supply = 5.0 + 2.0 * math.sin(0.5 * t)
    wanted = 2.9
    return [
        2.0 * yp[0] - (supply - inlet - 0.5 * main * abs(main)),
        inlet - node if inlet < wanted else node - wanted,
        1.0 * yp[1] - (node - 1.0 - 2.0 * left * abs(left)),
        3.0 * yp[2] - (node - 0.5 - 1.0 * right * abs(right)),
        main - left - right,
    ]


def pipe_network() -> GalleryProblem:
    """Pipes that meet in a node without volume, after a pressure regulator: index 2.

    Examples
    --------
    >>> from tether import gallery
    >>> gallery.pipe_network().index
    2
    """
    return GalleryProblem(
        name="pipe-network",
        title="Pressure-regulated pipes",
        description=(
            "A main feeds two branches through a regulator that keeps 2.9 bar downstream as long "
            "as there is more upstream, and is wide open otherwise. Flows have inertia and the "
            "node has no volume, so its pressure follows from the slopes of the flows."
        ),
        fun=_pipe_network,
        t_span=(0.0, 30.0),
        y0=np.array([2.5, 1.0, 1.5, 2.65, 2.65]),
        names=("main", "left", "right", "inlet", "node"),
        units=("l/s", "l/s", "l/s", "bar", "bar"),
        picture=("inlet", "node"),
        reference=np.array(
            [2.520477048315, 0.9746794151946, 1.54579763312, 3.117166802763, 2.9]
        ),
        source="SciPy's DOP853 for two flows, restarted where the regulator changes, 1e-12",
        reference_digits=10,
        expected_digits=6,
        atol_scale=np.ones(5),
        algebraic=(3, 4),
        index=2,
    )
