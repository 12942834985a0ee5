"""Several agents: a supervisor asks two others as its tools. All share one model, one target and one sidecar.

Run with: python examples/multi_agent.py --base-url http://localhost:8000/v1
"""

import argparse
import os

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_ooospec import ChatOoOSpec


@tool
def look_up_height(mountain: str) -> str:
    """Look up how high a mountain is."""
    return f"{mountain} is 2469 m high"


@tool
def plan_hike(start: str, hours: int) -> str:
    """Plan a hike."""
    return f"A hike of {hours} hours from {start}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1"))
    parser.add_argument("--sidecar", help="a sidecar of your own; by default the target's server uses its own")
    parser.add_argument("--model", default="default", help="the name under which the target serves its model")
    arguments = parser.parse_args()

    key = os.environ.get("OPENAI_API_KEY", "none")
    model = ChatOoOSpec(model=arguments.model, base_url=arguments.base_url, api_key=key, sidecar=arguments.sidecar)
    geographer = create_agent(model, [look_up_height], name="geographer")
    guide = create_agent(model, [plan_hike], name="guide")

    @tool
    def ask_geographer(question: str) -> str:
        """Ask about mountains and places."""
        return geographer.invoke({"messages": [("user", question)]})["messages"][-1].text

    @tool
    def ask_guide(question: str) -> str:
        """Ask for a plan."""
        return guide.invoke({"messages": [("user", question)]})["messages"][-1].text

    supervisor = create_agent(model, [ask_geographer, ask_guide], name="supervisor")
    question = "How high is 'Galdhøpiggen', and how do I get up there?"
    for message in supervisor.invoke({"messages": [("user", question)]})["messages"]:
        message.pretty_print()


if __name__ == "__main__":
    main()
