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


def test_the_integrations_add_little_to_what_langchain_imports() -> None:
    """A second HTTP library alone would take longer to import than all of ours."""
    added = "print(sorted({name.partition('.')[0] for name in set(sys.modules) - before} & slow))"
    slow = "import sys; slow = {'httpx', 'rich', 'typer', 'jsonschema', 'langchain'}; "
    stock = "import langchain_openai; before = set(sys.modules); "

    def run(code: str) -> str:
        command = [sys.executable, "-c", slow + stock + code + added]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert run("import langchain_ooospec, openai_ooospec; ") == "[]"
    assert "'langchain'" in run("from langchain_ooospec import OoOSpecMiddleware; ")
