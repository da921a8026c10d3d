"""Do the runs of a plan: each once, in processes of their own, every result kept as soon as it is there."""
