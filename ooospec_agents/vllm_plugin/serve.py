"""`vllm serve` for several API servers: `python -m ooospec_agents.vllm_plugin.serve --model ... --api-server-count 2`.

vLLM's `openai.api_server`, which serves well with one, overlooks `--api-server-count`; only the command `vllm serve`
heeds it, and that one does not start where the distribution is not called "vllm", as builds for the CPU are not.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Serve as `vllm serve` does, with the flags of `openai.api_server`."""
    from vllm.entrypoints.cli.serve import ServeSubcommand, make_arg_parser  # its home moved in 0.33
    from vllm.logger import configure_logging_from_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    from ooospec_agents.vllm_plugin.endpoint import remove_sockets

    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")  # as vLLM's commands do
    parser = make_arg_parser(FlexibleArgumentParser(description="vLLM with several API servers."))
    args = parser.parse_args(argv)
    configure_logging_from_args(args)
    serve = ServeSubcommand()
    serve.validate(args)
    atexit.register(remove_sockets)  # API servers that are spawned run no such functions of theirs
    serve.cmd(args)


if __name__ == "__main__":
    main()
