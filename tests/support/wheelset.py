"""The wheelset of the gallery, from a start that is wrong in one place."""

from tether.gallery.wheelset import residual as wheelset

__all__ = ["START", "wheelset"]

# The first angle of contact has the wrong sign here: a start has to find that out.
START = [
    0.14941e-2, 0.40089e-6, 0.11241e-5, -0.28573e-3, 0.26459e-3, *[0.0] * 6,
    7.4122380357667139e-6, -0.1521364296121248, 7.5634406395172940e-6, 0.1490635714733819,
    -8.3593e-3, -7.4144e-3,
]
