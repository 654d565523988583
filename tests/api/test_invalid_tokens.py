"""While somebody floods the API with invalid tokens, valid ones pass, also those that were never seen before."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from tests.api.conftest import Site

_NEW = 12


def test_valid_tokens_that_are_new_pass_while_invalid_ones_flood(site: Site) -> None:
    with site.rota.client() as client:
        tokens = [client.add_token(f"new-{number}", "user").token for number in range(_NEW)]
    over, refused = threading.Event(), list[int]()

    def guess(who: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            wrong = site.nobody.as_(f"rota_user_{who:03d}{number:040d}")
            refused.append(wrong.get("/api/v1/jobs").status)

    with ThreadPoolExecutor(4) as pool:
        guessing = [pool.submit(guess, who) for who in range(4)]
        try:
            while refused.count(429) < 20:  # until it is known that somebody guesses
                assert not any(each.done() for each in guessing)
            answers = [site.nobody.as_(token).get("/api/v1/jobs").status for token in tokens]
        finally:
            over.set()
    assert answers == [200] * _NEW
    assert set(refused) == {401, 429}
