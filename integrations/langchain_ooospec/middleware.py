"""Agent middleware: accelerates whatever model an agent uses, for agents whose model is chosen elsewhere."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_openai.chat_models.base import BaseChatOpenAI

from langchain_ooospec.accelerate import accelerate
from langchain_ooospec.chat_models import ChatOoOSpec

MAX_MODELS = 16
"""Most models remembered with their accelerated twins; the one unused longest goes first."""


class OoOSpecMiddleware(AgentMiddleware[Any, Any]):  # 1.0 has no third parameter, later ones have a default
    """Runs each model call of an agent on an accelerated twin of the agent's model.

    The model, its tools and its settings stay as they are. Models that are no `BaseChatOpenAI`, and a
    `ChatOoOSpec`, which needs no help, are called as they come.

    Args:
        sidecar: Base URL of a sidecar of the client's own. Without it the target's server uses its own.
        sidecar_model: The model or adapter to ask the sidecar for; by default its first.
        sidecar_api_key: The sidecar's key.

    Example:
        ```python
        agent = create_agent("openai:my-model", tools, middleware=[OoOSpecMiddleware()])
        ```
    """

    def __init__(
        self, *, sidecar: str | None = None, sidecar_model: str | None = None, sidecar_api_key: str | None = None
    ) -> None:
        super().__init__()
        self._sidecar = {"sidecar": sidecar, "sidecar_model": sidecar_model, "sidecar_api_key": sidecar_api_key}
        # By identity, and with the model itself, so that no other can take its place at that address.
        self._twins: OrderedDict[int, tuple[BaseChatModel, BaseChatModel]] = OrderedDict()

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the accelerated model; tools are bound to it inside `handler`, as ever."""
        return handler(self._accelerated(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
        return await handler(self._accelerated(request))

    def _accelerated(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        model = request.model
        if not isinstance(model, BaseChatOpenAI) or isinstance(model, ChatOoOSpec):
            return request
        _, twin = self._twins.pop(id(model), (model, None))
        twin = twin or accelerate(model, **self._sidecar)
        self._twins[id(model)] = (model, twin)
        while len(self._twins) > MAX_MODELS:
            self._twins.popitem(last=False)
        return request.override(model=twin)
