"""`rota completion`: the script that teaches a shell to complete `rota`."""

from __future__ import annotations

import click

from rota.cli.command import Invocation, command


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(call: Invocation, shell: str) -> int:
    """Print the completion script for a shell.

    \b
    Examples:
      eval "$(rota completion bash)"        (in ~/.bashrc)
      eval "$(rota completion zsh)"         (in ~/.zshrc)
      rota completion fish | source         (in ~/.config/fish/config.fish)
    """
    from click.shell_completion import get_completion_class

    from rota.cli.main import rota

    kind = get_completion_class(shell)
    assert kind is not None
    print(kind(rota, {}, "rota", "_ROTA_COMPLETE").source())
    return 0
