"""Run a paper's experiments again and put the results beside its printed figures."""
