"""Linear solvers that live in Python because their work dwarfs a call."""
