"""LangChain's standard suites for chat models, against a scripted target; only other media are switched off."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_ooospec import ChatOoOSpec
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from ooospec_agents.testing import ScriptedTarget, oblige


@pytest.fixture(scope="module", name="target")
def running_target() -> Iterator[ScriptedTarget]:
    with ScriptedTarget(oblige) as target:
        yield target


@pytest.fixture
def benchmark() -> Callable[..., Any]:
    """The suites' own timing fixture is not for tests here; what they time is run once."""
    return lambda function, *args, **kwargs: function(*args, **kwargs)


class TestUnit(ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOoOSpec

    @property
    def chat_model_params(self) -> dict[str, Any]:
        # Nothing listens there: the unit suite sends no request.
        return {"model": "scripted", "base_url": "http://127.0.0.1:9/v1", "api_key": "key"}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        environment = {"OPENAI_API_KEY": "key", "OPENAI_API_BASE": "http://127.0.0.1:9/v1"}
        expected = {"openai_api_key": "key", "openai_api_base": "http://127.0.0.1:9/v1"}
        return environment, {"model": "scripted"}, expected


class TestIntegration(ChatModelIntegrationTests):
    @pytest.fixture(autouse=True)
    def _use(self, target: ScriptedTarget) -> None:
        self.base_url = target.base_url

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOoOSpec

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": "scripted", "base_url": self.base_url, "api_key": "key"}

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return "another"

    @property
    def supports_model_override(self) -> bool:
        return True

    @property
    def supports_image_inputs(self) -> bool:
        return False

    @property
    def supports_image_tool_message(self) -> bool:
        return False

    @property
    def supports_audio_inputs(self) -> bool:
        return False

    @property
    def supports_pdf_inputs(self) -> bool:
        return False

    @property
    def supports_pdf_tool_message(self) -> bool:
        return False

    @property
    def supports_anthropic_inputs(self) -> bool:
        return False
