"""`OpenAI` and `AsyncOpenAI`: the SDK's own clients, with requests tagged at the SDK's own hook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import openai

from ooospec_agents.client import SidecarSettings
from openai_ooospec.connections import LoopConnections
from openai_ooospec.sdk import Connected, say_obstacle
from openai_ooospec.tagging import prepare, tag, target_of

if TYPE_CHECKING:
    from openai._models import FinalRequestOptions


class OpenAI(Connected, openai.OpenAI):
    """`openai.OpenAI`, accelerated where the target has the plugin, and unchanged everywhere else.

    Args:
        sidecar: Base URL of a sidecar of the client's own. Without it the target's server uses its own.
        sidecar_model: The model or adapter to ask the sidecar for; by default its first.
        sidecar_api_key: The sidecar's key.
        options: Everything that `openai.OpenAI` takes.
    """

    def __init__(
        self,
        *,
        sidecar: str | None = None,
        sidecar_model: str | None = None,
        sidecar_api_key: str | None = None,
        **options: Any,
    ) -> None:
        say_obstacle()
        super().__init__(**options)
        self._sidecar = SidecarSettings(sidecar, sidecar_model, sidecar_api_key)

    def prepare(self, tools: Sequence[Any]) -> None:
        """Get target and sidecar ready for these tools, in the background. Optional, and never raises."""
        prepare(self, self._sidecar, tools)

    def wait_until_known(self, timeout_s: float = 5.0) -> bool:
        """Wait until the target's status is known, after `prepare`. Requests never need this.

        Returns:
            Whether the target has the plugin.
        """
        return target_of(self, self._sidecar).wait(timeout_s)

    def copy(self, **options: Any) -> Self:
        """As `openai.OpenAI.copy`; the sidecar is kept."""
        return super().copy(**options, _extra_kwargs=_sidecar_options(self._sidecar))

    with_options = copy

    def __copy__(self) -> Self:
        """A shallow copy, as `copy` makes it."""
        return self.copy()

    def _prepare_options(self, options: FinalRequestOptions) -> FinalRequestOptions:
        return tag(self, self._sidecar, super()._prepare_options(options))


class AsyncOpenAI(Connected, openai.AsyncOpenAI):
    """`openai.AsyncOpenAI`, accelerated where the target has the plugin, and unchanged everywhere else.

    It may be used from several event loops: each gets its own connections, unless `http_client` is given.

    Args:
        sidecar: Base URL of a sidecar of the client's own. Without it the target's server uses its own.
        sidecar_model: The model or adapter to ask the sidecar for; by default its first.
        sidecar_api_key: The sidecar's key.
        options: Everything that `openai.AsyncOpenAI` takes.
    """

    def __init__(
        self,
        *,
        sidecar: str | None = None,
        sidecar_model: str | None = None,
        sidecar_api_key: str | None = None,
        _connections: LoopConnections | None = None,
        **options: Any,
    ) -> None:
        self._connections = _connections
        say_obstacle()
        super().__init__(**options)
        self._sidecar = SidecarSettings(sidecar, sidecar_model, sidecar_api_key)
        if options.get("http_client") is None:
            self._connections = LoopConnections(self._first_client)

    def prepare(self, tools: Sequence[Any]) -> None:
        """Get target and sidecar ready for these tools, in the background. Optional, and never raises."""
        prepare(self, self._sidecar, tools)

    def wait_until_known(self, timeout_s: float = 5.0) -> bool:
        """Wait until the target's status is known, after `prepare`. Requests never need this.

        Returns:
            Whether the target has the plugin.
        """
        return target_of(self, self._sidecar).wait(timeout_s)

    def copy(self, **options: Any) -> Self:
        """As `openai.AsyncOpenAI.copy`; the sidecar and the loops' connections are kept."""
        extra = _sidecar_options(self._sidecar)
        if options.get("http_client") is None:
            extra["_connections"] = self._connections
        return super().copy(**options, _extra_kwargs=extra)

    with_options = copy

    def __copy__(self) -> Self:
        """A shallow copy, as `copy` makes it."""
        return self.copy()

    @property
    def _client(self) -> Any:
        """The HTTP client of the running event loop. The SDK reads this attribute for each request."""
        client = None if self._connections is None else self._connections.current()
        return self._first_client if client is None else client

    @_client.setter
    def _client(self, client: Any) -> None:
        self._first_client = client

    async def _prepare_options(self, options: FinalRequestOptions) -> FinalRequestOptions:
        return tag(self, self._sidecar, await super()._prepare_options(options))


def _sidecar_options(sidecar: SidecarSettings) -> dict[str, Any]:
    return {
        "sidecar": sidecar.url,
        "sidecar_model": sidecar.model,
        "sidecar_api_key": sidecar.api_key,
    }
