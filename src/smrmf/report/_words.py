"""Numbers as people say them."""

from __future__ import annotations

from collections.abc import Sequence


def percent(share: float) -> str:
    """Return a share in percent; what is little, or nearly all, is not said to be none, or all."""
    if 0 < share < 0.01:
        return "under 1%"
    if 0.99 < share < 1:
        return "over 99%"
    return f"{share:.0%}"


def count(number: int, one: str = "row", many: str | None = None) -> str:
    """Return how many things there are, with the word for them."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def score(value: float) -> str:
    """Return a number between 0 and 1 with two digits; only one itself is 1.00, and only zero 0.00."""
    text = f"{value:.2f}"
    if text == "1.00" and value < 1 - 1e-9:
        return "0.99"
    return "0.01" if text == "0.00" and value > 1e-9 else text
