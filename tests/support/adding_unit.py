"""The two-bit adding unit as the Test Set for IVP Solvers prints it, with its two slips."""

import numpy as np

from tether.gallery.adding_unit import START as AT_REST
from tether.gallery.adding_unit import SUPPLY, Circuit, add, bulk_current


class AsPrinted(Circuit):
    def transistor(self, kind, first, gate, source, drain):
        super().transistor(kind, first, gate, source, drain)
        if drain is None:                  # the supply is left out of the charge
            bulk, rate = self.at(first + 3)
            u = bulk - SUPPLY
            self.left[first + 3] += bulk_current(u, SUPPLY, rate, 0.0)

    def nor(self, first, a, b):
        super().nor(first, a, b)
        # the node of another gate stands in place of the result
        (bulk, bulk_rate), (there, there_rate) = self.at(first + 12), self.at(first + 4)
        (slip, slip_rate) = self.at(first + 14)
        self.left[first + 12] -= bulk_current(
            bulk - there, slip - there, bulk_rate - there_rate, slip_rate - there_rate
        )


def adder(t, y, yp):
    return add(AsPrinted(y, yp), t)


START = np.array(AT_REST)
# S0, S1 and the carry at the end, from the Test Set: RADAU5 at a tolerance of 1e-5.
END, OUTPUTS = 320.0, [48, 129, 147]
RESULT = [0.2040419147264534, 4.997238455712048, 0.2038985905095614]
