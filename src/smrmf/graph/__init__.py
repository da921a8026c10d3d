"""From points to neighbours and graphs, and from graphs to labels and exemplars; knows no factorisation."""
