"""LangGraph nodes whose tool calls are accelerated."""

from langgraph_ooospec.model_node import SpeculativeModelNode

__all__ = ["SpeculativeModelNode"]
