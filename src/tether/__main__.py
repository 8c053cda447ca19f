"""Run the command line: ``python -m tether``."""

import sys

from tether.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
