"""Functions written by a grammar of Python idioms, traced and called, and compared.

`holders` are the places where Python can keep a number, `values` the ways to compute with it,
`shells` the ways to wrap code, `cases` puts them together, `compare` judges.
Run as a command: ``python -m fuzz --count 2000 --seed 1`` from the folder of the tests.
"""
