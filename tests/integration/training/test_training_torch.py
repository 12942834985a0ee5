"""Training and the sidecar in this process, on a tiny random Llama."""

import asyncio
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from safetensors.torch import load_file  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: E402

from ooospec_agents.sidecar.merged import KEPT, MergeError, merged  # noqa: E402
from ooospec_agents.training import local  # noqa: E402
from ooospec_agents.training import model as training_model  # noqa: E402
from ooospec_agents.training.checkpoint import RESUME  # noqa: E402
from ooospec_agents.training.evaluate import evaluate, requests_of  # noqa: E402
from ooospec_agents.training.layout import lay_out  # noqa: E402
from ooospec_agents.training.local import LocalBackend  # noqa: E402
from ooospec_agents.training.pack import pack  # noqa: E402
from ooospec_agents.training.rows import Example, Row  # noqa: E402
from ooospec_agents.training.settings import Settings  # noqa: E402
from ooospec_agents.training.traces import DataError  # noqa: E402
from ooospec_agents.training.train import train  # noqa: E402

SETTINGS = Settings("tiny", rank=2, alpha=4, learning_rate=1e-2, requests_per_step=2, trace_epochs=2)
EXAMPLES = [
    Example("a", "Shared text.\n", (Row("First?", " one\n", "value"), Row("The second?", " 2\n", "function"))),
    Example("b", "Other.\n", (Row("Third?", " null\n", "null"),)),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model of two layers, and a tokenizer of single bytes."""
    folder = tmp_path_factory.mktemp("tiny")
    letters = {letter: index for index, letter in enumerate(["<end>", *pre_tokenizers.ByteLevel.alphabet()])}
    tokenizer = Tokenizer(models.BPE(vocab=letters, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(letters),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        initializer_range=0.3,
        eos_token_id=0,
        bos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def loaded(base: Path) -> tuple[Any, Any]:
    llama, encode, _ = training_model.load_base(base, torch.device("cpu"), torch.float32)
    return llama.eval(), encode


def separate_logits(llama: Any, encode: Any) -> Any:
    """What the server computes: each question in a prompt of its own."""
    found = []
    for example in EXAMPLES:
        for row in example.rows:
            prompt, answer = encode(example.shared + row.question), encode(row.answer)
            logits = llama(torch.tensor([prompt + answer])).logits[0]
            found.append(logits[len(prompt) - 1 : len(prompt) + len(answer) - 1])
    return torch.cat(found)


def test_packed_questions_have_the_logits_of_separate_prompts(loaded: tuple[Any, Any]) -> None:
    llama, encode = loaded
    packed = pack([lay_out(example, encode) for example in EXAMPLES], torch.float32)
    with torch.inference_mode():
        together, apart = training_model.answer_logits(llama, packed), separate_logits(llama, encode)
    torch.testing.assert_close(together, apart, atol=1e-4, rtol=1e-4)


def test_questions_that_see_each_other_would_have_others(loaded: tuple[Any, Any]) -> None:
    """The positive control: with a plain causal mask the logits differ."""
    llama, encode = loaded
    packed = pack([lay_out(example, encode) for example in EXAMPLES], torch.float32)
    size = packed.ids.shape[1]
    causal = torch.full((size, size), torch.finfo(torch.float32).min).triu(1)[None, None]
    with torch.inference_mode():
        together = training_model.answer_logits(llama, replace(packed, mask=causal))
        assert not torch.allclose(together, separate_logits(llama, encode), atol=1e-2)


@pytest.mark.parametrize("fast", [True, False])
def test_bfloat16_only_where_the_processor_multiplies_it(monkeypatch: pytest.MonkeyPatch, fast: bool) -> None:
    # oneDNN says that it does on every processor with AVX-512, and emulates it on some.
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
    monkeypatch.setattr(training_model, "multiplies_bfloat16", lambda: fast)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert training_model.fitting_device() == (torch.device("cpu"), torch.bfloat16 if fast else torch.float32)


def test_the_local_sidecar_answers_as_each_prompt_alone_would(
    base: Path, loaded: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "fitting_device", lambda: (torch.device("cpu"), torch.float32))  # as it was loaded
    llama, encode = loaded
    prompts = ["Shared. First?", "Shared. A longer second?", "Shared. F"]
    answers = asyncio.run(LocalBackend(base).complete(prompts, 6))
    for prompt, answer in zip(prompts, answers, strict=True):
        ids, logprobs = encode(prompt), []
        with torch.inference_mode():
            for _ in answer.tokens:
                scores = llama(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
                ids.append(int(scores.argmax()))
                logprobs.append(float(scores.max()))
        assert answer.token_logprobs == pytest.approx(logprobs, abs=1e-4)


def tool(name: str, slot: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {slot: {"type": "string"}}, "required": [slot]}
    return {"type": "function", "function": {"name": name, "description": f"Tells {name}.", "parameters": schema}}


def record(number: int, name: str, value: str) -> dict[str, Any]:
    return {
        "id": str(number),
        "source": "tiny",
        "messages": [{"role": "user", "content": f"{name} of {value}"}],
        "tools": [tool("weather", "city"), tool("stocks", "company")],
        "gold": [{"name": name, "arguments": {"city" if name == "weather" else "company": value}}],
    }


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Four requests, two of them with traces, and an evaluation set of other functions."""
    requests = [
        record(i, ("weather", "stocks")[i % 2], value) for i, value in enumerate(("Rome", "IBM", "Oslo", "SAP"))
    ]
    traces = [
        {"id": one["id"], "calls": one["gold"], "finish": "tool_calls", "prompt_tokens": 1} for one in requests[:2]
    ]
    other = {"id": "e", "source": "tiny", "messages": [], "tools": [tool("news", "topic")]}
    paths = {}
    for name, lines in (("requests", requests), ("traces", traces), ("evaluation", [other])):
        paths[name] = tmp_path / f"{name}.jsonl"
        paths[name].write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return paths


def run(base: Path, files: dict[str, Path], out: Path) -> Any:
    return train(base, files["requests"], files["traces"], files["evaluation"], out, SETTINGS)


def test_a_run_leaves_an_adapter_its_record_and_its_curve(base: Path, files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "adapter"
    progress = run(base, files, out)
    # Four references once and two traces twice, two requests a step.
    assert (progress.requests, progress.steps) == (8, 4)
    assert {path.name for path in out.iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
        "training.json",
        "loss.csv",
        "loss.png",
    }
    written = json.loads((out / "training.json").read_text(encoding="utf-8"))
    assert {len(digest) for digest in written["inputs"].values()} == {64}
    assert json.loads((out / "adapter_config.json").read_text(encoding="utf-8"))["base_model_name_or_path"] == "tiny"


def test_a_stopped_run_goes_on_to_the_same_adapter(
    base: Path, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(base, files, tmp_path / "whole")
    loss = training_model.answer_loss

    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return loss(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(training_model, "answer_loss", interrupted)
        stopped = run(base, files, tmp_path / "parts")
    assert stopped.steps == 1
    assert (tmp_path / "parts" / RESUME).exists()
    run(base, files, tmp_path / "parts")
    whole, parts = (load_file(tmp_path / name / "adapter_model.safetensors") for name in ("whole", "parts"))
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value)


def test_a_stopped_run_does_not_go_on_with_other_data_or_settings(
    base: Path, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = training_model.answer_loss

    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return loss(*arguments)

    monkeypatch.setattr(training_model, "answer_loss", interrupted)
    run(base, files, tmp_path / "adapter")
    other = replace(SETTINGS, learning_rate=2e-2)
    with pytest.raises(DataError, match="holds a run with other settings"):
        train(base, files["requests"], files["traces"], files["evaluation"], tmp_path / "adapter", other)
    with files["requests"].open("a", encoding="utf-8") as file:
        file.write(json.dumps(record(9, "weather", "Bern")) + "\n")
    with pytest.raises(DataError, match="holds a run on other files"):
        run(base, files, tmp_path / "adapter")


def test_training_on_an_evaluation_function_is_refused(base: Path, files: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'weather'"):
        run(base, {**files, "evaluation": files["requests"]}, tmp_path / "adapter")


def test_a_trained_adapter_is_loaded_for_its_report_card(base: Path, files: dict[str, Path], tmp_path: Path) -> None:
    run(base, files, tmp_path / "adapter")
    from rich.console import Console

    backend = LocalBackend(base, tmp_path / "adapter")
    card = evaluate(backend, requests_of(files["requests"]), Console(quiet=True))
    assert (card["requests"], card["slots"], card["valued_slots"]) == (4, 8, 4)


@pytest.fixture
def adapter(base: Path, tmp_path: Path) -> Path:
    """An adapter that changes much."""
    llama, _, _ = training_model.load_base(base, torch.device("cpu"), torch.float32)
    adapted = training_model.add_adapter(llama, SETTINGS)
    torch.manual_seed(1)
    for parameter in training_model.trainable(adapted).values():
        torch.nn.init.normal_(parameter, std=0.3)
    training_model.save_adapter(adapted, "tiny", tmp_path / "adapter")
    return tmp_path / "adapter"


def test_a_merged_model_computes_what_base_and_adapter_do(base: Path, adapter: Path, tmp_path: Path) -> None:
    folder = merged(base, adapter, tmp_path / "cache")
    llama, encode, _ = training_model.load_base(base, torch.device("cpu"), torch.float32)
    whole, encode, _ = training_model.load_base(folder, torch.device("cpu"), torch.float32)
    ids = torch.tensor([encode("Some text")])
    with torch.inference_mode():
        bare = llama(ids).logits
        beside = training_model.load_adapter(llama, adapter).eval()
        torch.testing.assert_close(whole(ids).logits, beside(ids).logits, atol=1e-3, rtol=1e-3)
        assert not torch.allclose(whole(ids).logits, bare, atol=1e-1)
    assert merged(base, adapter, tmp_path / "cache") == folder


def test_old_merged_copies_go(base: Path, adapter: Path, tmp_path: Path) -> None:
    made = []
    for alpha in (1, 2, 3):
        config = json.loads((adapter / "adapter_config.json").read_text())
        (adapter / "adapter_config.json").write_text(json.dumps(config | {"lora_alpha": alpha}))
        made.append(merged(base, adapter, tmp_path / "cache"))
        os.utime(made[-1], (alpha, alpha))
    assert [folder for folder in made if folder.is_dir()] == made[-KEPT:]
    assert not list((tmp_path / "cache").glob(".making*"))


def test_an_adapter_of_another_base_is_not_merged(base: Path, adapter: Path, tmp_path: Path) -> None:
    wider = LlamaConfig(vocab_size=8, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)
    LlamaForCausalLM(wider).save_pretrained(tmp_path / "wider")
    with pytest.raises(MergeError, match="made for another base model"):
        merged(tmp_path / "wider", adapter, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("wider-merged-*"))


def test_an_adapter_of_another_kind_is_not_merged(base: Path, adapter: Path, tmp_path: Path) -> None:
    config = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(config | {"use_dora": True}))
    with pytest.raises(MergeError, match="use_dora"):
        merged(base, adapter, tmp_path / "cache")
