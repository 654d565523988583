"""Jobs that look at conditions: many conditions in one process, each in a subshell of its own. Pure texts.

Each answer is a line on the standard output: the number of the question, which of its conditions, and the exit
status or, of a file, the SHA-256. What conditions print themselves goes to the standard error.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Final, NamedTuple

from rota.core.pipelines.flow import DIGEST, Ask
from rota.core.pipelines.plain_conditions import is_plain
from rota.core.pipelines.session import Session

#: Conditions have so many seconds each.
TIMEOUT_S: Final = 60
#: At most so many questions, and about so many characters, for one process.
MOST_ASKS: Final = 64
_LONGEST: Final = 60_000
#: Exit statuses above this one are those of signals.
_SIGNALS: Final = 128
#: Instead of an exit status: it took too long.
_LATE: Final = "late"

#: `t QUESTION CONDITION WORD…` succeeds if a plain condition does, `k QUESTION CONDITION TEXT OUTCOME` if any
#: other does; `h QUESTION CONDITION FILE` answers with a file's digest.
_PROLOGUE: Final = """\
exec 3>&1 1>&2
t() {
n="$1 $2"
shift 2
"$@"
r=$?
echo "$n $r" >&3
return $r
}
h() {
d=$(sha256sum <"$3" 2>/dev/null)
echo "$1 $2 ${d%% *}" >&3
}
"""
#: A subshell cannot be left by `exit`, or spoilt by a syntax error. One process is the clock for all.
_WITH_CLOCK: Final = f"""\
ticks=0 late= c=
trap 'ticks=$((ticks+1)); if [ $ticks -ge {TIMEOUT_S} ] && [ -n "$c" ]; then late={_LATE}; kill -KILL $c; fi' USR1
(trap - USR1; while sleep 1 && kill -USR1 $$; do :; done) </dev/null >/dev/null 2>&1 3>&- &
clock=$!
k() {{
ticks=0 late=
(exec 3>&-; export ROTA_OUTCOME="$4"; eval "$3") </dev/null &
c=$!
while :; do wait $c; r=$?; kill -0 $c 2>/dev/null || break; done
c=
echo "$1 $2 ${{late:-$r}}" >&3
return $r
}}
"""
_STOP_CLOCK: Final = "kill $clock\n"
_EPILOGUE: Final = "exit 0\n"


class Answer(NamedTuple):
    """What a job found out about one question."""

    ask: Ask
    skips: dict[int, bool]  #: stage → does the element skip it? Only of those that were looked at
    digest: str | None  #: of the file that is part of what the element is; empty: there is none
    failed: bool  #: a condition ended by a signal or took too long, or nothing is known


def take_asks(session: Session) -> tuple[list[Ask], str]:
    """Questions for one process, taken from those that wait, and its command."""
    taken: list[Ask] = []
    lines: list[str] = []
    length = 0
    timed = False
    while session.asks and len(taken) < MOST_ASKS and length < _LONGEST:
        ask = session.asks.popleft()
        terms = list(_terms(session, ask, len(taken)))
        line = " &&\n".join(term for term, _ in terms) + "\n"
        if lines and length + len(line) > _LONGEST:
            session.asks.appendleft(ask)
            break
        taken.append(ask)
        lines.append(line)
        length += len(line)
        timed = timed or any(with_clock for _, with_clock in terms)
    begin, end = (_PROLOGUE + _WITH_CLOCK, _STOP_CLOCK + _EPILOGUE) if timed else (_PROLOGUE, _EPILOGUE)
    return taken, begin + "".join(lines) + end


def _terms(session: Session, ask: Ask, number: int) -> Iterator[tuple[str, bool]]:
    """One term for each stage that is asked about, which succeeds if that is skipped. Does it need the clock?"""
    failed = ask.element < session.whole and session.flow.failed(ask.element, ask.stage)
    outcome = "failed" if failed else "ok"
    for at, about in enumerate(ask.about):
        if about == DIGEST:
            assert session.route.redefining is not None
            file = session.command(ask.element, session.route.redefining, "redefines")
            yield f"h {number} {2 * at} {quote(file)}", False
            continue
        stage = session.definition.stages[about]
        terms = []
        timed = False
        for offset, (field, text) in enumerate((("skip_if", stage.skip_if), ("run_if", stage.run_if))):
            if not text:
                continue
            command = session.command(ask.element, about, field)
            plain = is_plain(command)
            timed = timed or not plain
            place = f"{number} {2 * at + offset}"
            term = f"t {place} {command.strip()}" if plain else f"k {place} {quote(command)} {outcome}"
            terms.append(f"! {term}" if offset else term)
        yield (terms[0] if len(terms) == 1 else "{ " + " || ".join(terms) + "; }"), timed


def read_answers(session: Session, asks: list[Ask], text: str | None) -> list[Answer]:
    """What a job has printed about these questions."""
    said: dict[tuple[int, int], str] = {}
    for line in (text or "").splitlines():
        words = line.split(" ")
        if len(words) == 3 and words[0].isdecimal() and words[1].isdecimal():
            said[int(words[0]), int(words[1])] = words[2]
    return [_answer(session, ask, number, said) for number, ask in enumerate(asks)]


def _answer(session: Session, ask: Ask, number: int, said: dict[tuple[int, int], str]) -> Answer:
    skips: dict[int, bool] = {}
    digest: str | None = None
    for at, about in enumerate(ask.about):
        if about == DIGEST:
            digest = said.get((number, 2 * at))
            if digest is None:
                return Answer(ask, skips, digest, True)
            continue
        stage = session.definition.stages[about]
        found: list[bool] = []
        for offset, text in enumerate((stage.skip_if, stage.run_if)):
            word = said.get((number, 2 * at + offset))
            if not text or True in found:
                continue
            if word is None:  # an earlier one has decided
                return Answer(ask, skips, digest, not at)
            if not word.isdecimal() or int(word) > _SIGNALS:
                return Answer(ask, skips, digest, at < ask.must)  # else it is asked again when that is needed
            found.append((word == "0") is not bool(offset))
        skips[about] = True in found
        if not skips[about]:
            break
    return Answer(ask, skips, digest, False)
