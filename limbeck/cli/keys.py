"""`limbeck keys`: make a pair of keys, and sign a release."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limbeck.cli import app
from limbeck.cli.terminal import output, progress
from limbeck.cli.verify import show
from limbeck.errors import RequestError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PASSPHRASE = "LIMBECK_KEY_PASSPHRASE"

keys = typer.Typer(no_args_is_help=True, help="Keys that sign releases: make a pair, or sign a release.")
app.add_typer(keys, name="keys")


@keys.command("new")
def new(
    name: Annotated[str, typer.Argument(help="The pair is written to NAME.key and NAME.pub.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to write to.")] = Path(),
    protect: Annotated[
        bool, typer.Option("--passphrase", help=f"Ask for a passphrase; {PASSPHRASE} gives one unasked.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Make a pair of Ed25519 keys: NAME.key signs and stays secret, NAME.pub checks and is handed out."""
    from limbeck.release.signature import fingerprint, write_keys

    passphrase = _passphrase(f"passphrase for {name}.key", again=True) if protect or PASSPHRASE in os.environ else None
    private, public, key = write_keys(out, name, passphrase)
    if as_json:
        print(json.dumps({"private": str(private), "public": str(public), "fingerprint": fingerprint(key)}))
        return
    output.print(f"{private}: keep it secret; it signs", highlight=False, soft_wrap=True)
    output.print(f"{public}: hand it out; its fingerprint is {fingerprint(key)}", highlight=False, soft_wrap=True)


@keys.command("sign")
def sign(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    key: Annotated[Path, typer.Option("--key", help="The private key (.key) to sign with.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a signature that is there.")] = False,
) -> None:
    """Sign a release that is what its certificate says; exit code 1 if it is not."""
    from limbeck.release.folder import sign_folder

    with progress("recomputing"):
        found = sign_folder(release, signing_key(key), force=force)
    if not found.consistent:
        show(release, found)
        output.print("nothing was signed", highlight=False)
        raise typer.Exit(1)
    output.print(f"{release} is {found.verdict}", markup=False, highlight=False, soft_wrap=True)


def signing_key(path: Path) -> "Ed25519PrivateKey":
    """The private key in a file, with its passphrase if it has one."""
    from limbeck.release.signature import read_private

    return read_private(path, lambda: _passphrase(f"passphrase of {path}"))


def _passphrase(question: str, again: bool = False) -> bytes:
    given = os.environ.get(PASSPHRASE)
    if given is None:
        if not sys.stdin.isatty():
            raise RequestError(f"a {question} is needed, and there is no terminal to ask on: set {PASSPHRASE}.")
        given = typer.prompt(question, hide_input=True, confirmation_prompt=again, err=True)
    if not given:
        raise RequestError(f"the {question} is empty; leave {PASSPHRASE} unset for a key without one.")
    return given.encode()
