"""LangChain's standard suites for chat models, against a scripted target; only other media are switched off."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_ooospec import ChatOoOSpec, accelerate
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from ooospec_agents.testing import Reply, ScriptedTarget, oblige


@pytest.fixture
def benchmark() -> Callable[..., Any]:
    """The suites' own timing fixture is not for tests here; what they time is run once."""
    return lambda function, *args, **kwargs: function(*args, **kwargs)


@pytest.fixture
def vcr() -> Any:
    """The scripted target stands for a recording: it answers the same always."""
    return SimpleNamespace(responses=["as scripted"])


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


class TestUnitWithASidecar(TestUnit):
    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {**super().chat_model_params, "sidecar": "http://127.0.0.1:9"}


class TestIntegration(ChatModelIntegrationTests):
    script: Callable[[Any], Reply] = staticmethod(oblige)

    @pytest.fixture(autouse=True)
    def _use(self) -> Iterator[None]:
        with ScriptedTarget(self.script) as target:
            self.base_url = target.base_url
            yield

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOoOSpec

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": "scripted", "base_url": self.base_url, "api_key": "key"}

    @property
    def enable_vcr_tests(self) -> bool:
        return True

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


class TestIntegrationV1(TestIntegration):
    """Content as typed blocks."""

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {**super().chat_model_params, "output_version": "v1"}


class TestIntegrationInBursts(TestIntegration):
    """Every answer is streamed, in bursts from the first chunk on."""

    script = staticmethod(lambda body: replace(oblige(body), shape="first_burst"))

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {**super().chat_model_params, "streaming": True}


class AcceleratedChatOpenAI(ChatOpenAI):
    """A user's own class, accelerated."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return accelerate(ChatOpenAI(*args, **kwargs))


# LangChain's own, with its default `method="json_schema"`.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings", "ignore:Received a Pydantic BaseModel V1")
class TestIntegrationAccelerated(TestIntegration):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return AcceleratedChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        # Off by default in `ChatOpenAI` where the address is not OpenAI's.
        return {**super().chat_model_params, "stream_usage": True}
