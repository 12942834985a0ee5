"""pydantic-ai: give its OpenAI provider our client, and its agents are accelerated, typed output included.

Run with: python examples/pydantic_ai_agent.py --base-url http://localhost:8000/v1
It needs: pip install 'pydantic-ai-slim[openai]'
"""

import argparse
import os

from openai_ooospec import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Forecast(BaseModel):
    """The weather to be expected."""

    city: str
    degrees: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1"))
    parser.add_argument("--sidecar", help="a sidecar of your own; by default the target's server uses its own")
    parser.add_argument("--model", default="default", help="the name under which the target serves its model")
    arguments = parser.parse_args()

    key = os.environ.get("OPENAI_API_KEY", "none")
    client = AsyncOpenAI(base_url=arguments.base_url, api_key=key, sidecar=arguments.sidecar)
    model = OpenAIChatModel(arguments.model, provider=OpenAIProvider(openai_client=client))
    agent = Agent(model, output_type=Forecast)

    @agent.tool_plain
    def measure(city: str) -> str:
        """Measure the temperature in a city."""
        return f"{city}: 14 degrees"

    result = agent.run_sync("It will be 17 degrees in 'Oslo'")
    print(repr(result.output))


if __name__ == "__main__":
    main()
