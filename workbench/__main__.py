"""`python -m workbench`, where the shell command is not on the path."""

import sys

from workbench.cli import main

if __name__ == "__main__":
    sys.exit(main())
