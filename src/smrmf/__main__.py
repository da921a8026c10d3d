"""``python -m smrmf`` is the command line."""

from smrmf.cli import main

main()
