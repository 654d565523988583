"""Python functions as calls: their names, what they take, and options that they carry. Nothing is pickled: what is
sent is where a function is found and arguments that are JSON."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

import msgspec

from rota.core.fields.calls import check_function, plain
from rota.errors import BadInput

P = ParamSpec("P")
R = TypeVar("R")

_WRITE_IT = "write it with 'def' at the top level of a module, and pass what it needs as arguments"


class Job(Generic[P, R]):
    """A function with the fields of the jobs that call it: what `rota.job` makes. Called, it runs here."""

    def __init__(self, function: Callable[P, R], fields: Mapping[str, Any]) -> None:
        self.function = function
        self.fields = dict(fields)
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


def job(**fields: Any) -> Callable[[Callable[P, R]], Job[P, R]]:
    """Decorator: fields of the jobs that call this function, such as `cpus`, `mem`, `retries` and `limits`.

    @rota.job(cpus=2, retries=1)
    def fit(path): ...
    """

    def decorate(function: Callable[P, R]) -> Job[P, R]:
        return Job(function, fields)

    return decorate


def entry_of(
    function: object, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, each: bool = False
) -> dict[str, Any]:
    """The fields of a job that makes this call. Raises `BadInput`."""
    fields: dict[str, Any] = {}
    if isinstance(function, str):
        name = check_function(function)
    else:
        if isinstance(function, Job):
            fields |= function.fields
            function = function.function
        name = name_of(function)
        for given in args if each else (args,):
            check_arguments(name, function, given, kwargs)
        if (place := _place_of(name)) and "env" not in fields:
            before = os.environ.get("PYTHONPATH", "")
            fields["env"] = {"PYTHONPATH": f"{place}{os.pathsep}{before}" if before else place}
    try:
        fields["args"] = plain(list(args))
        fields["kwargs"] = plain(dict(kwargs))
    except BadInput as error:
        raise error.at(field="args", label=f"{name}: an argument") from None
    fields["call"] = name
    return fields | ({"each": True} if each else {})


def with_fields(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a job; later parts win, and variables of the environment add up."""
    found: dict[str, Any] = {}
    for part in parts:
        env, more = found.get("env"), part.get("env")
        found |= part
        if isinstance(env, dict) and isinstance(more, dict):
            found["env"] = env | more
    return found


def _place_of(name: str) -> str:
    """The directory of the program that runs, if the module of this function lies there and jobs would not find
    it: they look in their working directory and in what is installed."""
    module = sys.modules.get(name.partition(":")[0].partition(".")[0])
    file = getattr(module, "__file__", None)
    if not file:
        return ""
    place = os.path.dirname(os.path.abspath(file))
    if os.path.basename(file).startswith("__init__."):
        place = os.path.dirname(place)
    program = os.path.abspath(sys.path[0] or os.getcwd())
    return place if place == program and place != os.getcwd() else ""


def name_of(function: Any) -> str:
    """`module:function`, or `path.py:function` for one of `__main__`. Raises `BadInput`."""
    if isinstance(function, functools.partial):
        raise BadInput("a partial object has no name to send", hint="pass the function and all its arguments")
    if inspect.ismethod(function) and not inspect.isclass(function.__self__):
        raise BadInput(
            f"the method {function.__qualname__} needs its object, which is not sent",
            hint="write a function that makes the object from its arguments",
        )
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not callable(function) or not module or not name:
        raise BadInput(
            f"{function!r} is no function with a name", hint="give a function, or a text: 'module:function'"
        )
    if "<lambda>" in name:
        raise BadInput("a lambda has no name under which another process finds it", hint=_WRITE_IT)
    if "<locals>" in name:
        raise BadInput(
            f"{name.replace('.<locals>', '')} is inside a function: another process cannot find it", hint=_WRITE_IT
        )
    if module == "__main__":
        path = getattr(sys.modules["__main__"], "__file__", None)
        if not path or not path.endswith(".py") or not os.path.exists(path):
            raise BadInput(
                f"{name} is in no file: it was typed in, or read from stdin",
                hint="write it into a module, and import it from there",
            )
        return f"{os.path.abspath(path)}:{name}"
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if (
        found is not function
        and getattr(found, "function", None) is not function
        and inspect.unwrap(found) is not function
    ):
        raise BadInput(f"{module}:{name} is another object than this function", hint=_WRITE_IT)
    return f"{module}:{name}"


def check_arguments(name: str, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments that the function does not take, or whose types its annotations exclude. Raises
    `BadInput`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        given = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise BadInput(f"{name} cannot be called like this: {error}").about("args") from None
    try:
        hints = inspect.get_annotations(function, eval_str=True)
    except Exception:
        return  # names that exist for type checkers only
    for argument, value in given.arguments.items():
        kind = signature.parameters[argument].kind
        if argument not in hints or kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        try:
            msgspec.convert(plain(value), hints[argument], dec_hook=_any_path)
        except msgspec.ValidationError as error:
            raise BadInput(f"{name}: argument '{argument}': {error}").about("args") from None
        except (TypeError, NotImplementedError, BadInput):
            continue  # a type of which msgspec knows nothing, or no JSON, which is said elsewhere


def _any_path(kind: Any, value: object) -> object:
    if isinstance(value, str) and isinstance(kind, type) and issubclass(kind, os.PathLike):
        return kind(value)  # type: ignore[call-arg]
    raise NotImplementedError
