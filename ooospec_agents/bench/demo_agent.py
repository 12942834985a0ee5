"""The demo's agent: one plain run is recorded, then each of its turns is put to both servers again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError

from ooospec_agents.bench.demo_tasks import SYSTEM_PROMPT, TOOLS, Task

MAX_TURNS = 3
MAX_TOKENS = 160

ModelFactory = Callable[..., BaseChatModel]
"""A chat model class, called with the keyword arguments of `ChatOpenAI`."""


@dataclass
class Wire:
    """The JSON bodies that went over the wire: requests and their answers, in order.

    A chat model drops token ids and whatever else it does not know, so they are read here.

    Attributes:
        requests: Bodies of the requests.
        answers: Bodies of the answers.
        seconds: Of each, from its sending to the last byte of its answer.
    """

    requests: list[dict[str, Any]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def begin(self, request: Any) -> None:
        """Hook for an httpx client, before a request is sent."""
        request.extensions["began"] = time.perf_counter()

    def note(self, response: Any) -> None:
        """Hook for an httpx client."""
        response.read()
        took = time.perf_counter() - response.request.extensions["began"]
        if response.request.url.path.endswith("/chat/completions") and response.status_code == 200:
            self.requests.append(json.loads(response.request.content))
            self.answers.append(json.loads(response.content))
            self.seconds.append(took)


@dataclass(frozen=True)
class Turn:
    """One model call as one side made it.

    Attributes:
        seconds: From the agent's call of the model until its message.
        token_ids: Output token ids.
        prompt_token_ids: Prompt token ids; equal on both sides, else they did different work.
        report: The "ooospec" report, or None.
    """

    seconds: float
    token_ids: list[int]
    prompt_token_ids: list[int]
    report: dict[str, Any] | None

    @property
    def steps(self) -> int:
        """Steps of the target."""
        return int(self.report["steps"]) if self.report and self.report.get("steps") else len(self.token_ids)


class Side:
    """An agent on one server.

    Args:
        factory: Chat model class.
        url: The server's root.
        model: Model name that the server answers to.
    """

    def __init__(self, factory: ModelFactory, url: str, model: str) -> None:
        from openai import DefaultHttpxClient

        self.wire = Wire()
        self.url = url
        self._http = DefaultHttpxClient(
            event_hooks={"request": [self.wire.begin], "response": [self.wire.note]}, timeout=300
        )
        chat = factory(
            model=model,
            base_url=f"{url}/v1",
            api_key="none",
            temperature=0,
            max_tokens=MAX_TOKENS,
            max_retries=0,
            timeout=300,
            extra_body={"return_token_ids": True},
            http_client=self._http,
        )
        self._whole = create_agent(chat, TOOLS, system_prompt=SYSTEM_PROMPT)
        self._one_turn = create_agent(chat, TOOLS, system_prompt=SYSTEM_PROMPT, interrupt_after=["model"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def run(self, task: Task, callbacks: Sequence[BaseCallbackHandler] = ()) -> list[AnyMessage]:
        """Let the agent do the task; its messages. An agent that goes round in circles is stopped."""
        messages: list[AnyMessage] = [HumanMessage(task.prompt)]
        try:
            limit: RunnableConfig = {"recursion_limit": 2 * MAX_TURNS, "callbacks": list(callbacks)}
            for state in self._whole.stream({"messages": [*messages]}, limit, stream_mode="values"):
                messages = state["messages"]
        except GraphRecursionError:
            pass
        return messages

    def turn(self, messages: Sequence[AnyMessage]) -> Turn:
        """Put the conversation so far to the model once, through the agent, and time it."""
        start = time.perf_counter()
        self._one_turn.invoke({"messages": list(messages)})
        seconds = time.perf_counter() - start
        answer = self.wire.answers[-1]
        choice = answer["choices"][0]
        return Turn(
            seconds,
            choice.get("token_ids") or [],
            answer.get("prompt_token_ids") or [],
            answer.get("ooospec"),
        )


def turns_of(messages: Sequence[AnyMessage]) -> list[list[AnyMessage]]:
    """What the model was asked in each turn of a recorded run: the messages before each of its own."""
    return [list(messages[:at]) for at, message in enumerate(messages) if isinstance(message, AIMessage)]
