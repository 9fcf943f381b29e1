"""`python -m factbook.verify`."""

import sys

from .command import main

sys.exit(main())
