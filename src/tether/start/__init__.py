"""Consistent starting values."""
