"""A graph node that calls a chat model, with everything prepared when the graph is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langchain_ooospec import ChatOoOSpec, accelerate
from langchain_openai.chat_models.base import BaseChatOpenAI
from langgraph._internal._runnable import RunnableCallable


class SpeculativeModelNode(RunnableCallable):
    """Calls a chat model on the state's messages and returns its answer as the state's update.

    The tools are bound once, when the node is made, so target and sidecar are warm before the graph runs.

    Args:
        model: A chat model. A `BaseChatOpenAI` of another class is accelerated; others run as they are.
        tools: What it may call; None leaves the model as it is, bound or not.
        tool_choice: As `bind_tools` takes it.
        messages_key: Where the state holds its messages, and where the answer goes.
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
        name: str = "model",
    ) -> None:
        super().__init__(self._call, self._acall, name=name, trace=False)
        self.messages_key = messages_key
        self.model = _bound(model, tools, tool_choice)

    def _call(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        return {self.messages_key: [self.model.invoke(self._messages(state), config)]}

    async def _acall(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        return {self.messages_key: [await self.model.ainvoke(self._messages(state), config)]}

    def _messages(self, state: Any) -> Any:
        if isinstance(state, Mapping):
            return state[self.messages_key]
        return getattr(state, self.messages_key)


def _bound(
    model: BaseChatModel | Runnable[Any, Any],
    tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool] | None,
    tool_choice: Any,
) -> Runnable[Any, Any]:
    if isinstance(model, BaseChatOpenAI) and not isinstance(model, ChatOoOSpec):
        model = accelerate(model)
    if tools is None:
        return model
    if not isinstance(model, BaseChatModel):
        msg = f"tools need a chat model to be bound to, not a {type(model).__name__!r}: bind them yourself"
        raise TypeError(msg)
    choice = {} if tool_choice is None else {"tool_choice": tool_choice}
    return model.bind_tools(tools, **choice)
