"""Wire formats whose calls begin with the function's name, outside any JSON."""

from __future__ import annotations

from dataclasses import dataclass

from ooospec_agents.formats.wire import WireFormat


@dataclass(frozen=True)
class NameFirst(WireFormat):
    """How a target writes calls that begin with a name. `opening` and `between` end where a name begins.

    Attributes:
        after_name: What ends the name.
    """

    after_name: str = ""
