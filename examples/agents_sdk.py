"""The OpenAI Agents SDK: give it our client, and its agents are accelerated.

Run with: python examples/agents_sdk.py --base-url http://localhost:8000/v1
It needs: pip install openai-agents
"""

import argparse
import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai_ooospec import AsyncOpenAI


@function_tool
def exchange_rate(source: str, target: str) -> str:
    """The exchange rate between two currencies.

    Args:
        source: Currency code, such as EUR.
        target: Currency code, such as EUR.
    """
    return f"1 {source} = 11.7 {target}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1"))
    parser.add_argument("--sidecar", help="a sidecar of your own; by default the target's server uses its own")
    parser.add_argument("--model", default="default", help="the name under which the target serves its model")
    arguments = parser.parse_args()

    set_tracing_disabled(True)  # traces go to OpenAI otherwise
    key = os.environ.get("OPENAI_API_KEY", "none")
    client = AsyncOpenAI(base_url=arguments.base_url, api_key=key, sidecar=arguments.sidecar)
    model = OpenAIChatCompletionsModel(model=arguments.model, openai_client=client)
    agent = Agent(name="Banker", instructions="You know exchange rates.", model=model, tools=[exchange_rate])
    result = Runner.run_sync(agent, "How many 'NOK' is one 'EUR'?")
    for item in result.new_items:
        print(f"{item.type}: {getattr(item, 'output', '') or getattr(item.raw_item, 'arguments', '')}")
    print(result.final_output)


if __name__ == "__main__":
    main()
