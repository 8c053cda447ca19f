"""Models, written as a user would write them: circuits from netlists, and flows on grids."""

from tether.models.circuits import Circuit
from tether.models.equations import Equations
from tether.models.fluids import Cavity, PeriodicFlow, Tube
from tether.models.netlist import read_netlist
from tether.models.sources import Dc, Pulse, Pwl, Sin
from tether.models.topology import Topology

__all__ = [
    "Cavity", "Circuit", "Dc", "Equations", "PeriodicFlow", "Pulse", "Pwl", "Sin", "Topology",
    "Tube", "read_netlist",
]
