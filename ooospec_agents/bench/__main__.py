"""`python -m ooospec_agents.bench`: methods in pairs."""

import typer

from ooospec_agents.bench.bench_command import main

if __name__ == "__main__":
    typer.run(main)
