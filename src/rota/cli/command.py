"""What all commands share: the global options, lazily loaded command groups, and the invocation."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from rota.client.blocking import Client
    from rota.home import Home
    from rota.settings import Settings


class Invocation:
    """The global options of one call of `rota`, with the home, settings and connection that follow from them."""

    def __init__(self) -> None:
        self.home_given: str | None = None
        self.address: str | None = None
        self.json = False
        self.quiet = False
        self.debug = False

    @property
    def home(self) -> Home:
        from rota.home import Home

        return Home.find(self.home_given)

    def settings(self) -> Settings:
        from rota.config import load

        return load(self.home).settings

    def connect(self) -> Client:
        """A connection to the manager. Raises `NoManager`."""
        from rota.client import connect

        return connect(self.home.path, address=self.address)

    def connect_to_read(self) -> Client:
        """The same for a command that only asks: if the last manager stopped because it was idle, it is started
        again. Commands that act say how to start it."""
        from rota.errors import NoManager

        try:
            return self.connect()
        except NoManager:
            from rota.client.endpoint import is_remote
            from rota.client.starter import wake_manager

            if is_remote(self.address) or not wake_manager(self.home):
                raise
        return self.connect()


def print_json(value: object) -> None:
    """Print one JSON value as one line of stdout."""
    from rota.cli.render.printing import print_out
    from rota.cli.render.text import json_text

    print_out(json_text(value))


def _store(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def callback(context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        if value:
            setattr(invocation(context), name, value)
        return value

    return callback


def invocation(context: click.Context) -> Invocation:
    return context.find_root().ensure_object(Invocation)


def connect_briefly(context: click.Context) -> Client:
    """A connection for shell completion, with a short timeout. Raises `NoManager`."""
    from rota.cli.input.completions import TIMEOUT_S
    from rota.client import connect

    given = invocation(context)
    return connect(given.home.path, address=given.address, timeout=TIMEOUT_S)


def global_options() -> list[click.Option]:
    """The options that are accepted before and after the subcommand."""

    def option(*names: str, to: str, help: str, **more: Any) -> click.Option:
        return click.Option(list(names), help=help, expose_value=False, is_eager=True, callback=_store(to), **more)

    return [
        option(
            "--home",
            to="home_given",
            metavar="DIR",
            help="The deployment's directory (default: $ROTA_HOME, else ~/.local/state/rota).",
        ),
        option(
            "--address",
            to="address",
            metavar="HOST:PORT",
            help="Connect to the manager at this address, over TLS.",
        ),
        option("--json", to="json", is_flag=True, help="Print one JSON value and nothing else on stdout."),
        option("--quiet", to="quiet", is_flag=True, help="Print ids only."),
        option("--debug", to="debug", is_flag=True, help="Print a traceback on errors."),
    ]


class CompletedString(click.types.StringParamType):
    """A string that a shell completes from what the manager knows."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[Any]]:
        from rota.cli.input.completions import completions

        return completions(ctx, param, incomplete, connect=lambda: connect_briefly(ctx))


class Command(click.Command):
    """A command with the global options; its function gets the `Invocation` first and may return an exit status.

    With `takes_command`, the words after `--` become the argument `command`.
    """

    def __init__(self, *args: Any, takes_command: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.takes_command = takes_command
        self.params.extend(global_options())
        for parameter in self.params:
            if type(parameter.type) is click.types.StringParamType:
                parameter.type = CompletedString()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.takes_command and "--" in args:
            at = args.index("--")
            ctx.meta["rota.command"] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        assert self.callback is not None
        if self.takes_command:
            ctx.params["command"] = ctx.meta.get("rota.command")
        return ctx.invoke(self.callback, invocation(ctx), **ctx.params)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), *(["[-- CMD…]"] if self.takes_command else [])]


class LazyGroup(click.Group):
    """A group whose members are given as `module:attribute` and imported when they are called."""

    def __init__(self, name: str, *, members: dict[str, str], **kwargs: Any) -> None:
        super().__init__(name, invoke_without_command=True, **kwargs)
        self.members = members
        self.params.extend(global_options())

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.members)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = self.members.get(cmd_name)
        if where is None:
            return None
        module, attribute = where.split(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.members and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], self.members, n=1)
            from rota.errors import UserError

            hint = f"did you mean '{close[0]}'?" if close else f"see '{ctx.command_path} --help'"
            raise UserError(f"there is no command '{args[0]}'", hint=hint)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        if not ctx._protected_args and not ctx.args:
            click.echo(ctx.get_help())
            return 0
        return super().invoke(ctx)


class Group(click.Group):
    """A noun with several verbs, such as `rota queue`. Without a verb it prints its help."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.no_args_is_help = False  # `invoke` does that
        self.params.extend(global_options())

    def invoke(self, ctx: click.Context) -> Any:
        if ctx._protected_args or ctx.args:
            return super().invoke(ctx)
        from rota.errors import UserError

        verbs = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        missing = UserError(f"'{ctx.command_path}' needs a command", hint=f"give one of {', '.join(verbs)}")
        if invocation(ctx).json:
            raise missing
        click.echo(ctx.get_help(), err=True)
        return missing.exit_status


def command(name: str, **options: Any) -> Callable[[Callable[..., int | None]], Command]:
    """Decorator: a function as a command."""
    return click.command(name, cls=Command, **options)
