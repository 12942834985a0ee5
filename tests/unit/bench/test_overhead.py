from collections.abc import Callable
from pathlib import Path

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.overhead import alternate, first_token_way, plain_chat_way
from ooospec_agents.bench.rawlog import RawLog
from ooospec_agents.bench.requests import Answer
from ooospec_agents.bench.rest import Rest
from ooospec_agents.bench.servers import Server


def test_the_order_alternates_and_a_stopped_run_goes_on(make_item: Callable[..., Item], tmp_path: Path) -> None:
    order: list[str] = []

    def way(name: str) -> Callable[[Item, int], Answer]:
        def answer(item: Item, number: int) -> Answer:
            order.append(f"{name}{number}")
            return Answer(token_ids=[1])

        return answer

    for pairs in (2, 3):
        alternate([make_item()], range(pairs), way("a"), way("b"), RawLog(tmp_path / "r.jsonl", {}))
    assert order == ["a0", "b0", "b1", "a1", "a2", "b2"]


def test_plain_chat_has_no_tools(target, make_item: Callable[..., Item]) -> None:
    plain_chat_way(Server("http://ours", "m"), target.client(), 8, Rest())(make_item(), 0)
    assert all("tools" not in body for _, body in target.bodies)


def test_first_tokens_of_two_ways_share_no_cache(target, make_item: Callable[..., Item]) -> None:
    for drafting in ("ooospec", "lexical"):
        answer = first_token_way(Server("http://ours", "m"), target.client(), drafting, cached=False)(make_item(), 7)
        assert answer.first_s is not None
    assert [body["cache_salt"] for _, body in target.bodies] == ["ooospec/7", "lexical/7"]


def test_the_request_that_warms_a_prompt_is_one_that_vllm_takes(target, make_item: Callable[..., Item]) -> None:
    first_token_way(Server("http://ours", "m"), target.client(), "lexical", cached=True)(make_item(), 0)
    warm, timed = (body for _, body in target.bodies)
    assert (warm["stream"], warm["max_tokens"], "stream_options" in warm) == (False, 1, False)
    assert timed["stream"]
