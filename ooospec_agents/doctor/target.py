"""The target: whether it answers, has our plugin and drafts; and whether a hint that is posted reaches a request."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from ooospec_agents._version import __version__
from ooospec_agents.doctor.findings import Finding
from ooospec_agents.hint import Hint

TIMEOUT_S = 60.0
"""Longest wait for one answer; a target on a CPU may be at work on others."""
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "report_health",
        "description": "Say that all is well.",
        "parameters": {"type": "object", "properties": {"well": {"type": "boolean"}}, "required": ["well"]},
    },
}
_SERVE = "ooospec serve target --model MODEL"


@dataclass(frozen=True)
class TargetView:
    """What was found out about a target. `status` is what its plugin says, or None without one."""

    findings: tuple[Finding, ...]
    status: dict[str, Any] | None = None
    model: str = ""


def look_at_target(base_url: str, api_key: str = "", *, expected: bool = True) -> TargetView:
    """Ask a target for its models and its status.

    Args:
        base_url: The server's address, with or without `/v1`.
        api_key: Its key.
        expected: Whether somebody named it; what nobody named need not be there.
    """
    base = _base(base_url)
    try:
        with _client(base, api_key) as http:
            models = http.get("models")
            status = http.get("ooospec/status")
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        text = f"{base!r} does not answer ({problem})"
        return TargetView((Finding("target", "problem" if expected else "note", text, _serve(base)),))
    if models.status_code in (401, 403):
        mend = "ooospec doctor --api-key KEY"
        return TargetView((Finding("target", "problem", f"{base!r} refuses the key ({models.status_code})", mend),))
    names = _names(models)
    if not names:
        text = f"{base!r} answered {models.status_code} to '/models': no OpenAI-compatible server is there"
        return TargetView((Finding("target", "problem", text, _serve(base)),))
    found = [Finding("target", "ok", f"{base!r} serves {names[0]!r}")]
    said = status.json() if status.status_code == 200 and _is_json(status) else None
    if not isinstance(said, dict) or "drafting" not in said:
        text = f"no plugin ({status.status_code}): requests are answered, but not drafted for"
        return TargetView((*found, Finding("plugin", "problem", text, f"{_SERVE} --port PORT")), None, names[0])
    return TargetView((*found, *_plugin(said)), said, names[0])


def try_hint_path(base_url: str, model: str, api_key: str = "") -> Finding:
    """Post a hint for a short request of our own, and read in its report whether it came."""
    base, request_id = _base(base_url), f"doctor-{uuid.uuid4().hex}"
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Are you well?"}],
        "tools": [TOOL],
        "tool_choice": "required",
        "max_tokens": 16,
        "temperature": 0,
        "vllm_xargs": {"ooospec_id": request_id, "ooospec_report": 1},
    }
    hint = Hint.of_call("report_health", {"well": True}).to_json()
    try:
        with _client(base, api_key) as http:
            json_type = {"Content-Type": "application/json"}
            posted = http.post(f"ooospec/hints/{request_id}", content=hint, headers=json_type)
            answer = http.post("chat/completions", json=body)
    except httpx.HTTPError as problem:
        return Finding("hint path", "problem", f"the request failed ({problem!r})", "ooospec doctor")
    if posted.status_code != 202 or answer.status_code != 200:
        text = f"posting a hint answered {posted.status_code}, the request {answer.status_code}: {answer.text[:200]}"
        return Finding("hint path", "problem", text, f"{_SERVE} --enable-auto-tool-choice --tool-call-parser PARSER")
    report = answer.json().get("ooospec") or {}
    if (report.get("hint") or {}).get("arrived"):
        accepted = sum((report.get("accepted") or {}).values())
        return Finding(
            "hint path",
            "ok",
            f"a posted hint came; {accepted} of {report.get('tokens')} tokens were drafted and accepted",
        )
    text = "a posted hint did not come: with several replicas, the post and the request may reach different ones"
    return Finding("hint path", "problem", text, f"{_SERVE} --sidecar URL")


def _plugin(status: dict[str, Any]) -> Iterator[Finding]:
    version, faults = status.get("version"), status.get("faults") or {}
    if not status["drafting"]:
        reason = status.get("reason") or "no reason given"
        yield Finding("plugin", "problem", f"the target does not draft: {reason}", f"{_SERVE} --print")
    else:
        yield Finding("plugin", "ok", f"version {version}, drafting calls in the format {status.get('wire_format')!r}")
    if version not in (__version__, "0"):  # "0" is the scripted target's
        text = f"the target has version {version}, this machine {__version__}"
        yield Finding("versions", "warning", text, f"pip install 'ooospec-agents=={version}'")
    if faults:
        counted = ", ".join(f"{kind} {count}" for kind, count in sorted(faults.items()))
        yield Finding("faults", "warning", f"swallowed by the plugin so far: {counted}; the log has the first of each")


def _base(url: str) -> str:
    return f"{url.rstrip('/').removesuffix('/v1')}/v1"


def _client(base: str, api_key: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    timeout = httpx.Timeout(TIMEOUT_S, connect=3.0)
    return httpx.Client(base_url=base, headers=headers, timeout=timeout, verify=base.startswith("https"))


def _serve(base: str) -> str:
    port = httpx.URL(base).port if "://" in base else None
    return f"{_SERVE} --port {port or 8000}"


def _is_json(response: httpx.Response) -> bool:
    try:
        response.json()
    except ValueError:
        return False
    return True


def _names(response: httpx.Response) -> list[str]:
    if response.status_code != 200 or not _is_json(response):
        return []
    data = response.json()
    models = data.get("data") if isinstance(data, dict) else None
    return [str(model.get("id")) for model in models or [] if isinstance(model, dict)]
