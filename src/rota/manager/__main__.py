"""`python -m rota.manager`. Nothing more: what is run as a script is compiled anew at every start."""

import gc
import sys

gc.disable()  # what is loaded stays, so to look for garbage in it is time lost
from rota.manager.loop.startup import main  # noqa: E402

gc.freeze()
gc.enable()
sys.exit(main())
