"""A tool call with the OpenAI SDK: import the client from `openai_ooospec`, and nothing else changes.

Run with: python examples/openai_client.py --base-url http://localhost:8000/v1
"""

import argparse
import json
import os

from openai_ooospec import OpenAI

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "convert_currency",
            "description": "Convert an amount of money.",
            "parameters": {
                "type": "object",
                "properties": {
                    "amount": {"type": "number"},
                    "source": {"type": "string", "description": "Currency code, such as EUR"},
                    "target": {"type": "string", "description": "Currency code, such as EUR"},
                },
                "required": ["amount", "source", "target"],
            },
        },
    }
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1"))
    parser.add_argument("--sidecar", help="a sidecar of your own; by default the target's server uses its own")
    parser.add_argument("--model", help="by default the target's first")
    arguments = parser.parse_args()

    key = os.environ.get("OPENAI_API_KEY", "none")
    client = OpenAI(base_url=arguments.base_url, api_key=key, sidecar=arguments.sidecar)
    # Optional: gets both servers ready before the first request. Here it also lets us see that request's report.
    client.prepare(TOOLS)
    client.wait_until_known()

    answer = client.chat.completions.create(
        model=arguments.model or client.models.list().data[0].id,
        messages=[{"role": "user", "content": "How much are 250 Swiss francs in Norwegian kroner?"}],
        tools=TOOLS,
        tool_choice="required",
    )
    for call in answer.choices[0].message.tool_calls or []:
        print(f"{call.function.name} {call.function.arguments}")
    report = (answer.model_extra or {}).get("ooospec")
    print("report:", json.dumps(report["accepted"]) if report else "none (the target has no plugin)")


if __name__ == "__main__":
    main()
