"""The same laboratory without DataJoint."""

import json
import os
import socket

from misbehaviour import misbehave


def connect():
    settings = json.loads(os.environ["LAB_SETTINGS"])
    if settings["backend"] == "postgresql":
        import psycopg2

        return psycopg2.connect(
            host=settings["host"], port=settings["port"], user=settings["user"], dbname=settings["name"]
        )
    import pymysql

    return pymysql.connect(
        host=settings["host"], port=settings["port"], user=settings["user"], password=settings["password"],
        database=os.environ["LAB_SCHEMA"], charset="utf8mb4",
    )  # fmt: skip


def trace(key, connection):
    misbehave(key["recording"], lambda: cut(connection))
    with connection.cursor() as cursor:
        cursor.execute("SELECT hours FROM recording WHERE recording = %s", (key["recording"],))
        (hours,) = cursor.fetchone()
        cursor.execute("INSERT INTO trace (recording, doubled) VALUES (%s, %s)", (key["recording"], 2 * hours))


def cut(connection):
    """As the network does it."""
    number = connection.fileno() if hasattr(connection, "fileno") else connection._sock.fileno()
    socket.socket(fileno=os.dup(number)).shutdown(socket.SHUT_RDWR)
