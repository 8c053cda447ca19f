"""What the tests have in common: small problems, ways to run and compare, and cases for tracing."""
