"""`python -m likewise`: the command line."""

import sys

from likewise.cli import main

if __name__ == "__main__":
    sys.exit(main())
