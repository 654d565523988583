"""Tables of a small laboratory, for both lines of DataJoint. What `make` does to a key is said by a file."""

import json
import os

import datajoint as dj
from misbehaviour import misbehave

for name, value in json.loads(os.environ.get("LAB_SETTINGS", "{}")).items():
    dj.config[f"database.{name}"] = value

schema = dj.Schema(os.environ["LAB_SCHEMA"])


@schema
class Recording(dj.Manual):
    definition = """
    recording : int
    ---
    hours : float
    """


@schema
class Trace(dj.Computed):
    definition = """
    -> Recording
    ---
    doubled : float
    """

    def make(self, key):
        number = key["recording"]
        misbehave(number)
        hours = (Recording & key).fetch1("hours")
        self.insert1({**key, "doubled": 2 * hours})


@schema
class Spectrum(dj.Computed):
    definition = """
    -> Recording
    ---
    peak : float
    """

    def make(self, key):
        self.insert1({**key, "peak": 1.0})
