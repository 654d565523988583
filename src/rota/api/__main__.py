"""`python -m rota.api`: the gateway. The manager starts it."""

import sys

from rota.api.serve import main

sys.exit(main())
