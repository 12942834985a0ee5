"""A graph node that calls a chat model, with everything prepared when the graph is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langchain_ooospec import ChatOoOSpec, accelerate
from langchain_openai.chat_models.base import BaseChatOpenAI

try:
    from langgraph.utils.runnable import RunnableCallable  # type: ignore[attr-defined]
except ImportError:  # LangGraph means to take it away from there; its own ToolNode has it from here
    from langgraph._internal._runnable import RunnableCallable


class SpeculativeModelNode(RunnableCallable):
    """Calls a chat model on the state's messages and returns its answer as the state's update.

    The tools are bound once, when the node is made, so target and sidecar are warm before the graph runs. The state
    is a dict, an object with attributes, or the list of messages itself, which is then answered by a list.

    Args:
        model: A chat model. A `BaseChatOpenAI` of another class is accelerated; others run as they are.
        tools: What it may call; without any the model stays as it is, bound or not (vLLM refuses an empty list).
        tool_choice: As `bind_tools` takes it.
        messages_key: Where the state holds its messages, and where the answer goes.
        input_messages_key: Where the messages are read from, if elsewhere (a summary that another node keeps, say).
        name: The node's name.

    Example:
        ```python
        graph = StateGraph(MessagesState)
        graph.add_node("model", SpeculativeModelNode(ChatOoOSpec(model="..."), tools))
        graph.add_node("tools", ToolNode(tools))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        ```
    """

    def __init__(
        self,
        model: BaseChatModel | Runnable[Any, Any],
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool] | None = None,
        *,
        tool_choice: Any = None,
        messages_key: str = "messages",
        input_messages_key: str | None = None,
        name: str = "model",
    ) -> None:
        super().__init__(self._answer, self._aanswer, name=name, trace=False)
        self.messages_key = messages_key
        self.input_messages_key = input_messages_key or messages_key
        self.model = _bound(model, tools, tool_choice)

    def _answer(self, state: Any, config: RunnableConfig, **kwargs: Any) -> Any:
        return self._update(state, self.model.invoke(self._messages(state), config, **kwargs))

    async def _aanswer(self, state: Any, config: RunnableConfig, **kwargs: Any) -> Any:
        return self._update(state, await self.model.ainvoke(self._messages(state), config, **kwargs))

    def _messages(self, state: Any) -> Any:
        if isinstance(state, list):
            return state
        if isinstance(state, Mapping):
            return state[self.input_messages_key]
        return getattr(state, self.input_messages_key)

    def _update(self, state: Any, answer: Any) -> Any:
        return [answer] if isinstance(state, list) else {self.messages_key: [answer]}


def _bound(
    model: BaseChatModel | Runnable[Any, Any],
    tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool] | None,
    tool_choice: Any,
) -> Runnable[Any, Any]:
    if isinstance(model, BaseChatOpenAI) and not isinstance(model, ChatOoOSpec):
        model = accelerate(model)
    if not tools:
        return model
    if not isinstance(model, BaseChatModel):
        msg = f"tools need a chat model to be bound to, not a {type(model).__name__!r}: bind them yourself"
        raise TypeError(msg)
    choice = {} if tool_choice is None else {"tool_choice": tool_choice}
    return model.bind_tools(tools, **choice)
