"""``smrmf demo``: see it work, on data that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path

import click

from smrmf.cli import _options
from smrmf.cli._shared import in_order, say, stage
from smrmf.cli.fit import show


@click.command(
    epilog="""\b
Example
  smrmf demo
"""
)
@click.option("-o", "--output", type=click.Path(path_type=Path), default="smrmf_demo", show_default=True,
              help="Folder to write.")  # fmt: skip
@_options.force
def demo(output: Path, force: bool) -> None:
    """Cluster 1797 handwritten digits, without their labels, and write a page about them."""
    with in_order():
        from smrmf.tasks._demo import demo_table
        from smrmf.tasks._fit import FitRequest, fit_table
        from smrmf.tasks._results import check_output, write_fit
        from smrmf.tasks._tables import TableChoice

        with demo_table() as path:
            request = FitRequest(TableChoice(str(path)), n_clusters=10)
            check_output(output, request, force)
            say("1797 images of digits, 8 x 8 pixels each, into ten clusters (the first fit compiles) ...")
            fitted = fit_table(request, stage)
            write_fit(fitted, request, output, force=force, report=True, command="smrmf demo", stages=stage)
        show(fitted)
        say(f"Open {output / 'report.html'} in a browser, and look at the tables beside it.", style="bold")
