"""A LangGraph graph of your own: a model node that has everything ready before the first message comes.

Run with: python examples/langgraph_graph.py --base-url http://localhost:8000/v1
"""

import argparse
import os

from langchain_core.tools import tool
from langchain_ooospec import ChatOoOSpec
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph_ooospec import SpeculativeModelNode


@tool
def find_room(city: str, nights: int) -> str:
    """Find a hotel room."""
    return f"A room in {city} for {nights} nights: 140 euros"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1"))
    parser.add_argument("--sidecar", help="a sidecar of your own; by default the target's server uses its own")
    parser.add_argument("--model", default="default", help="the name under which the target serves its model")
    arguments = parser.parse_args()

    key = os.environ.get("OPENAI_API_KEY", "none")
    model = ChatOoOSpec(model=arguments.model, base_url=arguments.base_url, api_key=key, sidecar=arguments.sidecar)

    graph = StateGraph(MessagesState)
    graph.add_node("model", SpeculativeModelNode(model, [find_room]))
    graph.add_node("tools", ToolNode([find_room]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    agent = graph.compile(checkpointer=InMemorySaver())

    thread = {"configurable": {"thread_id": "1"}}
    for question in ("A room in 'Oslo' for 3 nights?", "And in 'Bergen' for 2?"):
        for update in agent.stream({"messages": [("user", question)]}, thread, stream_mode="updates"):
            for node, state in update.items():
                print(f"{node}:", state["messages"][-1].text or state["messages"][-1].tool_calls)


if __name__ == "__main__":
    main()
