"""Analysis of equations: index, hidden constraints, reduced systems, conditions, jumps."""
