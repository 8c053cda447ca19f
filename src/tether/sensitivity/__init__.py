"""Derivatives of solutions with respect to parameters and starting values.

A run is taped: the steps it accepted, the values it started from, and why it started again. It is
then a chain of maps, whose derivatives are applied one after the other: forwards for `sol.sens`,
transposed and backwards for gradients (docs/mathematics.md, (33) to (38)).
"""
