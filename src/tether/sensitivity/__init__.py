"""Derivatives of solutions by parameters and starting values.

A run is taped: the steps it accepted, the starts it began from, and why it began anew. Everything
in it that depends on a parameter is a chain of maps, and their derivatives are applied one after
the other, forwards for `sol.sens` or backwards for gradients (docs/mathematics.md, (33) to (38)).
"""
