"""The command line: one command a file. Exit codes: 0 done, 1 a check failed, 2 the request was wrong."""

import sys

import typer

from limbeck.cli.terminal import errors
from limbeck.errors import RequestError

app = typer.Typer(
    name="limbeck",
    help="Distil a sensitive labelled dataset into a tiny one, with a differential-privacy guarantee.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """A command: what a person can mend is one message and exit code 2, never a traceback."""
    try:
        app()
    except RequestError as error:
        errors.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("stopped.")
        sys.exit(130)
    except MemoryError:
        errors.print("[bold red]error:[/] not enough memory. Try a smaller --per-class or --chunk.")
        sys.exit(2)


def escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        from limbeck import __version__

        print(__version__)
        raise typer.Exit


# Each module registers its command on `app`; none imports JAX before it is called.
from limbeck.cli import (  # noqa: E402
    audit,  # noqa: F401
    check,  # noqa: F401
    data,  # noqa: F401
    demo,  # noqa: F401
    distill,  # noqa: F401
    evaluate,  # noqa: F401
    fit,  # noqa: F401
    keys,  # noqa: F401
    ledger,  # noqa: F401
    measure,  # noqa: F401
    plan,  # noqa: F401
    predict,  # noqa: F401
    schema,  # noqa: F401
    verify,  # noqa: F401
)
