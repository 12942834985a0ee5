"""OpenAI clients whose tool calls are accelerated: import `OpenAI` from here, and change nothing else."""

from openai_ooospec.clients import AsyncOpenAI, OpenAI
from openai_ooospec.from_client import accelerate_async_client, accelerate_client

__all__ = ["AsyncOpenAI", "OpenAI", "accelerate_async_client", "accelerate_client"]
