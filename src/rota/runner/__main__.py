"""`python -m rota.runner`. Nothing more: what is run as a script is compiled anew at every start."""

import gc
import sys

gc.disable()  # what is loaded stays, so to look for garbage in it is time lost
from rota.runner.startup import main  # noqa: E402

gc.enable()
sys.exit(main())
