"""`python -m memkernel`."""

from __future__ import annotations

import sys

from memkernel.cli import main

if __name__ == "__main__":
    sys.exit(main())
