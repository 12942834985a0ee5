"""The adapters that come with the package, by the base model that each was trained on."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "adapters"
"""A folder for each shipped adapter, named after its base model's last part in small letters."""
NONE = "none"
"""What chooses no adapter."""
WEIGHTS = "adapter_model.safetensors"
"""The file of an adapter's weights."""


def shipped(model: str) -> Path | None:
    """The adapter that comes with the package for a model, by the last part of its name; None where there is none.

    Args:
        model: A hub name, a packaged model's name or a folder that is called as the model is.
    """
    folder = FOLDER / Path(model).name.casefold()
    return folder if (folder / WEIGHTS).is_file() else None


def adapter_for(model: str, chosen: str | None = None) -> str | None:
    """The folder of the adapter to serve a model with: what the user chose, else the shipped one.

    Args:
        model: The sidecar's base model.
        chosen: A folder, `NONE` for no adapter, or None for the shipped one where there is one.
    """
    if chosen is not None:
        return None if chosen == NONE else chosen
    found = shipped(model)
    return str(found) if found else None
