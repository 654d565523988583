"""Tables whose keys are of many types, with a renamed attribute."""

import uuid

import datajoint as dj
import lab
from misbehaviour import misbehave


def uuid_of(number):
    return str(number) if lab.BACKEND == "postgresql" else uuid.UUID(int=number)


@lab.schema
class Odd(dj.Manual):
    # On PostgreSQL, DataJoint cannot insert uuids.
    definition = """
    subject : varchar(12)
    day : date
    code : {}
    dose : decimal(6,2)
    """.format("varchar(40)" if lab.BACKEND == "postgresql" else "uuid")


@lab.schema
class OddSum(dj.Computed):
    definition = """
    -> Odd.proj(animal="subject")
    ---
    total : float
    """

    def make(self, key):
        misbehave(0)
        (Odd.proj(animal="subject") & key).fetch1()
        self.insert1({**key, "total": 1.0})


dj.config["jobs.allow_new_pk_fields_in_computed_tables"] = True


@lab.schema
class Pieces(dj.Computed):
    definition = """
    -> lab.Recording
    piece : int
    ---
    size : float
    """

    def make(self, key):
        self.insert({**key, "piece": piece, "size": 1.0} for piece in range(3))
