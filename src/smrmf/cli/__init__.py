"""The command line: it parses and calls, nothing else. One file per command."""

from __future__ import annotations

import io
import sys

try:
    import typer

    from smrmf.cli.data import data
    from smrmf.cli.reproduce import reproduce
except ImportError as error:  # pragma: no cover - depends on the installation
    raise SystemExit(f"The command line needs {error.name}: pip install 'smrmf[cli]'") from None

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def smrmf() -> None:
    """Cluster by matrix factorisation that listens only to the neighbourhoods worth listening to."""


app.command()(data)
app.command()(reproduce)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names may have letters that a log does not know; hours of work must not end by one.
            stream.reconfigure(errors="replace")
    app()
