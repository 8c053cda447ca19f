"""A run as a single HTML page without external files."""
