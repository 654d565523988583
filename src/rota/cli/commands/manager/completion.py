"""`rota completion`: the script that teaches a shell to complete `rota`."""

from __future__ import annotations

from typing import Final

import click

from rota.cli.command import Invocation, command
from rota.cli.render.printing import print_out

#: Bash ends words also at @, = and :, which selectors and limits have inside. So the words are put together
#: again before they are asked about, and from an answer is taken what bash believes to be another word.
_BASH: Final = """\
%(complete_func)s() {
    local IFS=$'\\n' rest=$COMP_LINE word answer kind value typed i
    local -a words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $i -eq 0 || $rest == [[:space:]]* ]]; then
            words+=("$word")
        else
            words[${#words[@]} - 1]+=$word
        fi
        rest=${rest#"${rest%%%%[![:space:]]*}"}
        rest=${rest#"$word"}
    done
    typed=${words[${#words[@]} - 1]}
    answer=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) %(complete_var)s=bash_complete "$1")
    COMPREPLY=()
    while IFS=',' read -r kind value; do
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                value=${value#"${typed%%"$2"}"}
                [[ $value == *[[:space:]]* ]] && printf -v value %%q "$value"
                COMPREPLY+=("$value")
                ;;
        esac
    done <<< "$answer"
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


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
    made = kind(rota, {}, "rota", "_ROTA_COMPLETE")
    if shell == "bash":
        made.source_template = _BASH  # type: ignore[misc]
    print_out(*made.source().split("\n"))
    return 0
