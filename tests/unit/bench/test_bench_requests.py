from collections.abc import Callable

import httpx
import pytest

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.requests import RequestFailed, ask, chat_body, with_xargs

CALL = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
REPORT = {"ooospec": "ooospec", "ooospec_report": 1}


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_is_read_alike_streamed_or_not(target, make_item: Callable[..., Item], stream: bool) -> None:
    body = with_xargs(chat_body("m", make_item(5), stream=stream), REPORT)
    answer = ask(target.client(), "http://ours", body)
    assert answer.token_ids == [5, 1, 2, 3, 4, 5, 6, 7]
    assert (answer.calls, answer.finish, answer.prompt_token_ids) == ([CALL], "tool_calls", [9])
    assert answer.steps == 2


def test_a_stream_tells_tokens_as_they_come(target, make_item: Callable[..., Item]) -> None:
    seen: list[int] = []
    answer = ask(target.client(), "http://stock", chat_body("m", make_item(), stream=True), seen.append)
    assert seen == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [n for _, n in answer.arrivals] == [1] * 8
    assert answer.first_s == answer.arrivals[0][0]


def test_accepted_drafts_of_the_servers_own_metrics_are_no_steps(target, make_item: Callable[..., Item]) -> None:
    def count(host, body, answer) -> None:
        answer["metrics"] = {"speculative_decoding": {"num_accepted_draft_tokens": 5}}

    target.change = count
    assert ask(target.client(), "http://stock", chat_body("m", make_item())).steps == 3


def test_a_refusal_is_told_with_its_text(make_item: Callable[..., Item]) -> None:
    client = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(404, text="no model 'm'")))
    with pytest.raises(RequestFailed, match="404: no model 'm'"):
        ask(client, "http://stock", chat_body("m", make_item()))


def test_xargs_are_added_and_the_body_stays(make_item: Callable[..., Item]) -> None:
    body = chat_body("m", make_item()) | {"vllm_xargs": {"user": 1}}
    assert with_xargs(body, {"ooospec": "off"})["vllm_xargs"] == {"user": 1, "ooospec": "off"}
    assert body["vllm_xargs"] == {"user": 1}
