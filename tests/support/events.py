"""Event functions, and systems to watch them on."""


def event(fun, **attributes):
    """Wrap a function of (t, y, yp) as an event with attributes."""
    def wrapped(t, y, yp, *args):
        return fun(t, y, yp, *args)

    for name, value in attributes.items():
        setattr(wrapped, name, value)
    return wrapped


def clock(time, **attributes):
    """An event that happens at a time."""
    return event(lambda t, y, yp: t - time, **attributes)


def crossing(fun, apply=None, direction=0, terminal=False):
    """An event where a function of (t, y) is zero."""
    attributes = {} if apply is None else {"apply": apply}
    return event(lambda t, y, yp, *args: fun(t, y), direction=direction, terminal=terminal,
                 **attributes)


def line(t, y, yp):
    """y' = 1: the steps grow without bound."""
    return [yp[0] - 1.0]


def height(t, y, yp):
    return y[0]
