"""`vllm serve` for several API servers: `python -m ooospec_agents.vllm_plugin.serve --model ... --api-server-count 2`.

vLLM's `openai.api_server`, which serves well with one, overlooks `--api-server-count`; only the command `vllm serve`
heeds it, and that one does not start where the distribution is not called "vllm", as builds for the CPU are not.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Serve as `vllm serve` does, with the flags of `openai.api_server`."""
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.entrypoints.serve.utils.api_utils import cli_env_setup
    from vllm.logger import configure_logging_from_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    from ooospec_agents.vllm_plugin.endpoint import remove_sockets

    cli_env_setup()
    parser = make_arg_parser(FlexibleArgumentParser(description="vLLM with several API servers."))
    args = parser.parse_args(argv)
    configure_logging_from_args(args)
    serve = ServeSubcommand()
    serve.validate(args)
    atexit.register(remove_sockets)  # API servers that are spawned run no such functions of theirs
    serve.cmd(args)


if __name__ == "__main__":
    main()
