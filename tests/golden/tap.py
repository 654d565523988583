"""Put into the environment of a release as `sitecustomize`: keeps every frame that a process sends.

One file for each process, of whole frames.
"""

import os

if "GOLDEN_TAP" in os.environ:
    from rota.wire import codec

    _original = codec.frame

    def _kept(message: object) -> bytes:
        data: bytes = _original(message)  # type: ignore[arg-type]
        with open(f"{os.environ['GOLDEN_TAP']}/{os.getpid()}", "ab") as file:
            file.write(data)
        return data

    codec.frame = _kept
