"""Structured extraction: a pydantic model out of a text. It is one forced call, which is what speculation does best.

Run with: python examples/structured_extraction.py --base-url http://localhost:8000/v1
"""

import argparse
import os

from langchain_ooospec import ChatOoOSpec
from pydantic import BaseModel, Field

TEXTS = [
    "Invoice 'AB' of 'Fjell AS', 3 chairs, 1200 in total",
    "Invoice 'CD' of 'Fossen ANS', 12 lamps, 8400 in total",
]


class Invoice(BaseModel):
    """An invoice."""

    number: str = Field(description="As it stands on the invoice")
    sender: str
    pieces: int
    total: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1"))
    parser.add_argument("--sidecar", help="a sidecar of your own; by default the target's server uses its own")
    parser.add_argument("--model", default="default", help="the name under which the target serves its model")
    arguments = parser.parse_args()

    key = os.environ.get("OPENAI_API_KEY", "none")
    model = ChatOoOSpec(model=arguments.model, base_url=arguments.base_url, api_key=key, sidecar=arguments.sidecar)
    extract = model.with_structured_output(Invoice, include_raw=True)
    for found in extract.batch(TEXTS):
        report = found["raw"].response_metadata.get("ooospec")
        print(found["parsed"], "| accepted:", report["accepted"] if report else "no report")


if __name__ == "__main__":
    main()
