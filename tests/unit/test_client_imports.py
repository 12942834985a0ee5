"""A client pulls neither torch nor vLLM."""

import subprocess
import sys

CHECK = "import sys, {modules}; print(sorted(set(sys.modules) & {{'torch', 'vllm', 'transformers', 'zmq'}}))"


def heavy_modules(modules: str, before: str = "") -> str:
    command = [sys.executable, "-c", before + CHECK.format(modules=modules)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_integrations_import_no_engine() -> None:
    assert heavy_modules("langchain_ooospec, openai_ooospec, langgraph_ooospec") == "[]"


def test_the_scripted_servers_import_no_engine() -> None:
    assert heavy_modules("ooospec_agents.testing.fixtures") == "[]"


def test_the_check_would_see_an_engine() -> None:
    before = "import sys, types; sys.modules['torch'] = types.ModuleType('torch'); "
    assert heavy_modules("langchain_ooospec", before) == "['torch']"
