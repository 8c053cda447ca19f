"""A list of places where a function can keep state."""


class Places(list):
    """Makers of places: each returns what switches something on, and what tells whether it is."""

    def add(self, make):
        """Register a maker."""
        self.append(make)
        return make
