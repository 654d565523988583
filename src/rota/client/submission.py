"""Turns the arguments of `add`, or a file, into what is uploaded: batches and options."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rota.client.batches import Most, UploadBatch
from rota.client.fields.fields import Wanted
from rota.client.fields.new_spec import new_spec
from rota.client.intake import from_bytes, from_objects
from rota.client.session import AddOptions
from rota.client.submit_environment import default_memory, working_directory
from rota.core.fields.values import MAX_NAME
from rota.errors import BadInput
from rota.wire.client_messages import NewSpec

Entry = str | list[str] | Mapping[str, object]

_BLOCK: Final = 1 << 20


def new_id() -> str:
    """An id for a submission: 128 random bits in hex."""
    return os.urandom(16).hex()


def base_wanted(
    fields: Mapping[str, object],
    *,
    retries: int = 3,
    group: str = "default",
    text: bool = False,
    mem: int | None = None,
) -> Wanted:
    """The defaults of all jobs of a submission, overridden by these fields."""
    base = Wanted(
        cwd=working_directory(),
        mem=mem or default_memory(),
        retries=retries,
        group=group,
    )
    return base.changed(fields, text=text)


def spec_of(fields: Mapping[str, object], *, text: bool = False, mem: int | None = None) -> NewSpec:
    """The specification of one job with these fields."""
    return new_spec(base_wanted(fields, text=text, mem=mem), 0)


def prepare(
    entries: Iterable[Entry] | str | Mapping[str, object],
    fields: Mapping[str, Any],
    *,
    check: bool,
    input: str = "",
    most: Most | None = None,
) -> tuple[Iterator[UploadBatch], AddOptions]:
    """For `add`: one command or many, with default fields."""
    base = base_wanted(fields)
    if isinstance(entries, str | Mapping):
        entries = [entries]
    return from_objects(entries, base, most=most), options_for(base, check=check, input=input)


def prepare_file(
    path: str | os.PathLike[str],
    fields: Mapping[str, Any],
    *,
    check: bool,
    input: str = "",
    script: bool = False,
    lines: bool = False,
) -> tuple[Iterator[UploadBatch], AddOptions]:
    """For `add_file`: an input file in any of the formats of `rota add`, or a script that is one job."""
    name = os.fspath(path)
    if script:
        from rota.client import scripts

        read = scripts.read(read_file(name, "a script"), source=shown(name), name=group_of(name))
        base = base_wanted(read.defaults, group=group_of(name)).changed(read.options, text=True).changed(fields)
        return from_objects([read.command()], base), options_for(base, check=check, always_new=True, input=input)
    base = base_wanted(fields, group=group_of(name))
    batches = from_bytes(read_file(name), base, source=shown(name), lines=lines)
    return batches, options_for(base, check=check, input=input)


def options_for(
    base: Wanted, *, check: bool, always_new: bool = False, attach: bool = False, input: str = ""
) -> AddOptions:
    return AddOptions(
        fresh=always_new and not base.once and not base.rerun,
        rerun=base.rerun,
        input=input,
        check=check,
        allow_unsatisfiable=base.allow_unsatisfiable,
        attach=attach,
    )


def group_of(path: str) -> str:
    """The report group of jobs from a file: its name, with invalid characters replaced."""
    if path.startswith(("/dev/", "/proc/")):
        return "default"  # a shell's <(…)
    name = os.path.basename(path).encode("utf-8", "replace").decode()
    name = "".join(c if c.isprintable() and c not in ",\\" else "_" for c in name)[:80].lstrip("@")
    return name.encode()[:MAX_NAME].decode(errors="ignore") or "default"


def input_of(path: str) -> str:
    """The identity of an input when it is added again: its absolute path; empty for a pipe."""
    absolute = os.path.abspath(path)
    if absolute.startswith(("/dev/", "/proc/")):
        return ""  # a shell's <(…)
    return absolute.encode("utf-8", "replace").decode()


def shown(path: str) -> str:
    """A path with unprintable characters escaped, for messages."""
    return path.encode("unicode_escape", "backslashreplace").decode("ascii") if not path.isprintable() else path


def read_file(path: str, what: str = "a file of commands, or '-'") -> Iterator[bytes]:
    """The blocks of a file, which should be what it says. Raises `BadInput` when it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            yield from read_descriptor(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"cannot read {shown(path)}: {reason}", hint=f"give {what}") from None


def read_descriptor(descriptor: int) -> Iterator[bytes]:
    while block := os.read(descriptor, _BLOCK):
        yield block


def read_stdin() -> Iterator[bytes]:
    """The blocks of stdin. Raises `BadInput` when it cannot be read."""
    try:
        yield from read_descriptor(0)
    except OSError as error:
        raise BadInput(f"cannot read stdin: {error.strerror}", hint="give a file of commands") from None
