"""The command ``tether``."""
