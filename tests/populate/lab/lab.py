"""Tables of a small laboratory, for both lines of DataJoint. What `make` does to a key is said by a file."""

import json
import os
import socket

import datajoint as dj
from misbehaviour import misbehave

SETTINGS = json.loads(os.environ["LAB_SETTINGS"])
BACKEND = SETTINGS.get("backend", "mysql")
for name, value in SETTINGS.items():
    dj.config[f"database.{name}"] = value

schema = dj.Schema(os.environ["LAB_SCHEMA"])


def cut():
    """The connection, as the network does it."""
    connection = dj.conn()._conn
    number = connection.fileno() if hasattr(connection, "fileno") else connection._sock.fileno()
    socket.socket(fileno=os.dup(number)).shutdown(socket.SHUT_RDWR)


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
        misbehave(number, cut)
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
