"""`python -m rota.manager`. Nothing more: what is run as a script is compiled anew at every start."""

import sys

from rota.manager.loop.startup import main

sys.exit(main())
