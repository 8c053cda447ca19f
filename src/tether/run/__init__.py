"""The integration from start to end."""
