"""The public function, imported on first use."""

from ._write import write_report as write_report
