"""A LangChain agent: use `ChatOoOSpec` where you would use `ChatOpenAI`, and nothing else changes.

Run with: python examples/langchain_agent.py --base-url http://localhost:8000/v1
"""

import argparse
import os

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_ooospec import ChatOoOSpec


@tool
def find_trains(origin: str, destination: str, date: str) -> str:
    """Find trains between two cities on a date (YYYY-MM-DD)."""
    return f"{origin} to {destination} on {date}: 08:05, 10:05 and 14:35"


@tool
def book_train(origin: str, destination: str, date: str, departure: str, seats: int) -> str:
    """Book seats on a train by its departure time (HH:MM)."""
    return f"Booked {seats} seats: {origin} to {destination}, {date} at {departure}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1"))
    parser.add_argument("--sidecar", help="a sidecar of your own; by default the target's server uses its own")
    parser.add_argument("--model", default="default", help="the name under which the target serves its model")
    arguments = parser.parse_args()

    model = ChatOoOSpec(
        model=arguments.model,
        base_url=arguments.base_url,
        api_key=os.environ.get("OPENAI_API_KEY", "none"),
        sidecar=arguments.sidecar,
        temperature=0,
    )
    agent = create_agent(model, [find_trains, book_train])
    question = "Which trains go from Oslo to Bergen on 2026-12-01?"
    for message in agent.invoke({"messages": [("user", question)]})["messages"]:
        message.pretty_print()
        if isinstance(message, AIMessage) and "ooospec" in message.response_metadata:
            print("accepted:", message.response_metadata["ooospec"]["accepted"])


if __name__ == "__main__":
    main()
