"""LangChain chat models whose tool calls are accelerated: swap the class, or accelerate your model."""

from typing import TYPE_CHECKING, Any

from langchain_ooospec.accelerate import accelerate
from langchain_ooospec.chat_models import ChatOoOSpec

if TYPE_CHECKING:
    from langchain_ooospec.middleware import OoOSpecMiddleware

__all__ = ["ChatOoOSpec", "OoOSpecMiddleware", "accelerate"]


def __getattr__(name: str) -> Any:
    """Agents are imported by those who use them: `langchain` is not needed for a chat model."""
    if name != "OoOSpecMiddleware":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    try:
        from langchain_ooospec.middleware import OoOSpecMiddleware
    except ModuleNotFoundError as problem:
        if problem.name != "langchain":
            raise
        msg = "OoOSpecMiddleware needs 'langchain': pip install 'ooospec-agents[langchain]'"
        raise ImportError(msg) from problem
    return OoOSpecMiddleware
