"""`python -m factbook_cli`."""

import sys

from factbook_cli.main import main

sys.exit(main())
