"""``python -m regimix`` is ``regimix``."""

import sys

from regimix.cli import main

if __name__ == "__main__":
    sys.exit(main())
