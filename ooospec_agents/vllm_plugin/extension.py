"""The worker extension: ties our proposer to its model runner, once, after start."""

from __future__ import annotations

import logging
from typing import Any

from ooospec_agents.vllm_plugin.messages import LOGGER

logger = logging.getLogger(LOGGER)


class Extension:
    """Mixed into vLLM's worker class by `--worker-extension-cls`; its only name there is `ooospec_bind`."""

    def ooospec_bind(self) -> dict[str, Any]:
        """Bind the proposer of this worker, the first time; then and later say how it stands.

        Returns:
            A JSON-able status: "drafting" (bool), "reason" (why not, or ""), "rank", "repairs" (what was
            found and done, as text), "faults" (swallowed so far), and more once bound. Never raises.
        """
        try:
            return bind_worker(self)
        except Exception as error:
            logger.exception("ooospec: the proposer could not be bound; requests are served without drafts")
            return {
                "drafting": False,
                "reason": f"{type(error).__name__}: {error}",
                "repairs": [],
                "faults": 1,
            }


def bind_worker(worker: Any) -> dict[str, Any]:
    """Bind the proposer in vLLM's `worker` process to its model runner; its status."""
    from ooospec_agents.vllm_plugin.proposer import Proposer

    runner = getattr(worker, "model_runner", None)
    proposer = getattr(runner, "drafter", None)
    rank = int(getattr(worker, "rank", 0))
    if not isinstance(proposer, Proposer):
        reason = f"the drafter of {type(runner).__name__!r} is {type(proposer).__name__!r}, not ours"
        return {"drafting": False, "reason": reason, "rank": rank, "repairs": [], "faults": 0}
    if not proposer.bound:
        proposer.bind(runner, rank=rank)
        status = proposer.status()
        if status["drafting"]:
            logger.info("ooospec: drafting is on: %s", status)
        elif status["read"]:
            logger.warning("ooospec: requests are served without drafts: %s", status["reason"])
    return proposer.status()
