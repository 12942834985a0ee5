"""Out-of-order semantic speculation for fast tool calling: hints, drafts and the servers that use them."""

from ooospec_agents._version import __version__
from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.hint import CallHint, Hint, SlotHint

__all__ = ["CallHint", "Catalog", "Function", "Hint", "Slot", "SlotHint", "__version__"]
