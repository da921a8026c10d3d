"""Sentences of the library in the words of a command line."""

from __future__ import annotations

import re

from smrmf.graph.columns import SILENCE

# What is told to somebody with Python, and what to do instead without.
IN_OPTIONS = (
    (re.escape(f", {SILENCE}"), ""),
    (r"use force to replace it|overwrite=True to replace it", "use --force to replace it"),
    (r"\bscale='(\w+)'", r"--scale \1"),
    (r"scale the features to \[0, 1\]", "use --scale minmax"),
    (r"leave columns and scale at their defaults", "leave out --columns and --scale"),
    (r"leave (it|them) out of columns", r"leave \1 out of --columns"),
    (r"ask for it by name to use it", "name it in --columns to use it"),
    (r"use metric='cosine'", "fit it by --set metric=cosine"),
    (r"that smrmf\.save wrote", "that smrmf fit wrote"),
    (r"n_clusters=(\d+) needs at least \d+ points, but X has n_samples=(\d+)",
     r"\1 clusters are more than the \2 rows"),
    (r"X has n_samples=(\d+)", r"the table has \1 rows"),
)  # fmt: skip


def for_a_terminal(sentence: str) -> str:
    """Return a sentence with options instead of what only a program can write."""
    for written, instead in IN_OPTIONS:
        sentence = re.sub(written, instead, sentence)
    return sentence
