"""Builders that turn the description of a system into a `tether.Problem`."""
