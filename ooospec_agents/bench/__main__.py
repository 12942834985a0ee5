"""`python -m ooospec_agents.bench`: methods in pairs."""

from ooospec_agents.bench.paired import app

if __name__ == "__main__":
    app()
