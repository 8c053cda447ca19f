"""Find where a function of time is zero within a step, from its values at one time after another.

The search asks for a time, the caller gives it the value there, and so on until the time is the
answer: the core for programs (`tether._core.events`), Python for functions that are called.
"""

import cython
from cython.cimports.libc.math import fabs

# Stages of the search.
AT_OLD = cython.declare(cython.int, 0)
AT_NEW = cython.declare(cython.int, 1)
SCANNING = cython.declare(cython.int, 2)
NARROWING = cython.declare(cython.int, 3)
# Points inside a step in which an event leaves zero and returns.
POINTS_INSIDE = cython.declare(cython.int, 16)
EPS = cython.declare(cython.double, 2.0**-52)


class ZeroSearch:
    """A search for a zero; `t` is the next time to evaluate at, and finally the answer.

    Examples
    --------
    >>> from tether._core.zero import ZeroSearch
    >>> search = ZeroSearch()
    >>> search.narrow_down(0.0, 2.0, -2.0, 2.0, 1e-15)
    >>> while not search.take(search.t * search.t - 2.0):
    ...     pass
    >>> round(search.t, 12)
    1.414213562373
    """

    def begin(self, t_old, t_new, old):
        """Look for a zero within a step at the beginning of which the value was `old`.

        y' of the interpolant differs a little from that of the step: a function of y' that passes
        zero at the very end of the step may not change its sign on the interpolant.
        """
        self.a = t_old
        self.b = t_new
        self.side = old
        self.stage = AT_OLD
        self.t = t_old

    def stay_at(self, t):
        """Make a time the answer."""
        self.t = t

    def narrow_down(self, a, b, ga, gb, close):
        """Look for a zero between a and b, where the values have different signs."""
        self.a = a
        self.b = b
        self.ga = ga
        self.gb = gb
        self.close = close
        self.stage = NARROWING
        self.t = a + 0.5 * (b - a)

    def take(self, value):
        """Take the value at `t`; tell whether `t` is now the answer."""
        if self.stage == NARROWING:
            return self.narrow(value)
        if self.stage == AT_OLD:
            self.ga = value
            self.stage = AT_NEW
            self.t = self.b
            return False
        if self.stage == AT_NEW:
            self.gb = value
            if not (self.gb * self.side < 0.0 and not self.ga * self.side > 0.0):
                return self.bracket()
            self.stage = SCANNING              # it has left zero within the step
            self.points = 0
        elif value * self.side > 0.0:
            self.a = self.t
            self.ga = value
            return self.bracket()
        self.points += 1
        if self.points == POINTS_INSIDE:
            return self.bracket()
        self.t = self.a + (self.b - self.a) * self.points / POINTS_INSIDE
        return False

    def bracket(self):
        """Narrow the interval if the sign changes in it; else take one of its ends."""
        if self.ga == 0.0 or self.gb == 0.0 or (self.ga > 0.0) == (self.gb > 0.0):
            self.t = self.a if fabs(self.ga) <= fabs(self.gb) else self.b
            return True
        self.narrow_down(
            self.a, self.b, self.ga, self.gb,
            4.0 * EPS * max(fabs(self.a), fabs(self.b), 1e-300),
        )
        return False

    def narrow(self, value):
        """Continue by inverse quadratic interpolation while it pays, else by bisection.

        This is Chandrupatla's method (1997): as good as Brent's, and simpler.
        """
        shortest: cython.double
        share: cython.double = 0.5
        place: cython.double
        height: cython.double
        if (value > 0.0) == (self.ga > 0.0):
            self.c = self.a
            self.gc = self.ga
        else:
            self.c = self.b
            self.gc = self.gb
            self.b = self.a
            self.gb = self.ga
        self.a = self.t
        self.ga = value
        shortest = 0.5 * self.close / fabs(self.b - self.a) if self.b != self.a else 1.0
        if value == 0.0 or shortest > 0.5:
            self.t = self.a if fabs(self.ga) < fabs(self.gb) else self.b
            return True
        place = (self.a - self.b) / (self.c - self.b)
        height = (self.ga - self.gb) / (self.gc - self.gb)
        if height * height < place and (1.0 - height) * (1.0 - height) < 1.0 - place:
            share = self.ga / (self.gb - self.ga) * self.gc / (self.gb - self.gc)
            share += (
                (self.c - self.a) / (self.b - self.a) * self.ga / (self.gc - self.ga)
                * self.gb / (self.gc - self.gb)
            )
        share = min(max(share, shortest), 1.0 - shortest)
        self.t = self.a + share * (self.b - self.a)
        return False
