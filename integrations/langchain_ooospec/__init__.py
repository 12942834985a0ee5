"""LangChain chat models whose tool calls are accelerated: swap the class, or accelerate your model."""

from langchain_ooospec.accelerate import accelerate
from langchain_ooospec.chat_models import ChatOoOSpec

__all__ = ["ChatOoOSpec", "accelerate"]
