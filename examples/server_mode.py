"""Server mode: the plain OpenAI client, nothing of ours in it. `ooospec serve target` does the work.

Run with: python examples/server_mode.py --base-url http://localhost:8000/v1
"""

import argparse
import json
import os

from openai import OpenAI

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "send_mail",
            "description": "Send a mail.",
            "parameters": {
                "type": "object",
                "properties": {"to": {"type": "string"}, "subject": {"type": "string"}, "text": {"type": "string"}},
                "required": ["to", "subject", "text"],
            },
        },
    }
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1"))
    parser.add_argument("--model", help="by default the target's first")
    arguments = parser.parse_args()

    client = OpenAI(base_url=arguments.base_url, api_key=os.environ.get("OPENAI_API_KEY", "none"))
    answer = client.chat.completions.create(
        model=arguments.model or client.models.list().data[0].id,
        messages=[{"role": "user", "content": "Tell 'ann@example.com' about the 'meeting' that 'it is moved to noon'"}],
        tools=TOOLS,
        tool_choice="required",
        # Optional: with this header the answer says what was drafted. Other servers pass over it.
        extra_headers={"x-ooospec-report": "1"},
    )
    for call in answer.choices[0].message.tool_calls or []:
        print(f"{call.function.name} {call.function.arguments}")
    report = (answer.model_extra or {}).get("ooospec")
    print("report:", json.dumps(report["accepted"]) if report else "none (the target has no plugin)")


if __name__ == "__main__":
    main()
