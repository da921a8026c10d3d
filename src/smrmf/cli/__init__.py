"""The command line: it parses and calls, nothing else. One file per command."""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

try:
    import click
except ImportError:  # pragma: no cover - depends on the installation
    raise SystemExit("The command line needs click: pip install 'smrmf[app]'") from None

import smrmf
from smrmf.cli._shared import refuse
from smrmf.cli.data import data
from smrmf.cli.demo import demo
from smrmf.cli.explain import explain
from smrmf.cli.fit import fit
from smrmf.cli.predict import predict
from smrmf.cli.reproduce import reproduce
from smrmf.cli.select import select
from smrmf.cli.suggest import suggest

EPILOG = """\b
Begin with
  smrmf demo
  smrmf suggest table.csv
  smrmf fit table.csv --clusters 5 --report
"""


class InOrder(click.Group):
    """Commands in the order in which people need them."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)


@click.group(cls=InOrder, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(smrmf.__version__, message="%(prog)s %(version)s")
def app() -> None:
    """Cluster the rows of a table, and find the few that explain them."""


for command in (fit, predict, explain, suggest, select, demo, data, reproduce):
    app.add_command(command)


def main() -> NoReturn:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names may have letters that a log does not know; hours of work must not end by one.
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Carry out one command, and return its exit code."""
    try:
        code = app.main(arguments, prog_name="smrmf", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        click.echo(help_wanted.format_message())
        return 0
    except click.ClickException as error:
        return _refused(error)
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        # Whoever read our results has enough. Python would complain when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code or 0


def _refused(error: click.ClickException) -> int:
    """Tell in one sentence how a call is wrong, where click takes four lines."""
    context = getattr(error, "ctx", None) or click.Context(app, info_name="smrmf")
    with context.scope(cleanup=False):
        try:
            refuse(f"{error.format_message()} Try '{context.command_path} --help'.")
        except click.exceptions.Exit as end:
            return end.exit_code
