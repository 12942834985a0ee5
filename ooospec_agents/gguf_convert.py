"""Turns one GGUF file into a folder that transformers and vLLM load: bfloat16 weights, config, tokenizer.

Run as a process of its own (``python -m ooospec_agents.gguf_convert FILE FOLDER``): dequantising takes
several times the model's size in memory, given back at the end, and whatever the libraries print stays apart.
"""

import sys
from pathlib import Path

CHAT_TEMPLATES = Path(__file__).parent / "chat_templates"
"""Templates that replace the file's own where that one knows no tools."""


def convert(gguf: Path, folder: Path, chat_template: str | None = None) -> None:
    """Writes the model in ``gguf`` to ``folder`` in bfloat16.

    Args:
        gguf: the GGUF file.
        folder: where to write; made if missing.
        chat_template: name of a template of ours, without its ending, to use instead of the file's own.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True, gguf_file=gguf.name),
    )
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    # A GGUF file keeps no length limit of the tokenizer; the model's context length is the same number.
    tokenizer.model_max_length = model.config.max_position_embeddings
    if chat_template is not None:
        tokenizer.chat_template = (CHAT_TEMPLATES / f"{chat_template}.jinja").read_text(encoding="utf-8")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
