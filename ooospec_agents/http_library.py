"""The HTTP library: openai's own where that is loaded already, else httpx. Both have the same interface.

Loading a second one would take longer than all of ours. It is never loaded later, in the background: openai looks
into `sys.modules` for httpx at each request, and one that is half loaded by another thread makes the request fail.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or "httpx2" not in sys.modules:
    import httpx
else:
    import httpx2 as httpx

__all__ = ["httpx"]
