"""Attack the library for some minutes and print what held: ``make soak``, which the gate does not run.

    python tests/soak/run.py                                 all attacks, some 25 minutes on two idle cores
    python tests/soak/run.py --only fuzz,kills --minutes 3   some of them, in three minutes altogether
    python tests/soak/run.py --only fuzz --trial 1000017     one trial again, as a failure says it

A trial is a number: the same number is the same trial. ``--seed`` chooses which numbers are tried. Attacks of
which there are endlessly many trials share ``--minutes``; of the others all are done.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# What the attacks use of the tests; worker processes have the same path.
sys.path[1:1] = [str(HERE.parent / "laws"), str(HERE.parent), str(ROOT / "docs")]

from watchdog import Worker  # noqa: E402

# Numbers of trials that a seed has for itself.
SPAN = 1_000_000


@dataclass(frozen=True)
class Attack:
    """A module with a function ``attack(number)``, which raises where a promise is not kept.

    ``share`` is its part of the minutes, ``workers`` how many trials run at once, ``patience`` the seconds of
    an idle machine after which a trial counts as one that hangs, ``count`` how many different trials there
    are: all of them are done.
    """

    words: str
    share: float
    workers: int
    patience: float
    count: int | None = None


ATTACKS = {
    "fuzz": Attack("a random table in a random form, random options: fitted twice", 5, 2, 120),
    "endurance": Attack("1500 fits in one process", 0, 1, 900, 1),
    "lines": Attack("Ctrl-C at every line of the library that a fit runs", 0, 2, 600, 25),
    "moments": Attack("20 SIGINTs at random moments of a fit", 1, 2, 300),
    "kills": Attack("a small reproduction, killed twice and started again", 2, 1, 900),
    "kills_quick": Attack("`smrmf reproduce --quick`, killed 20 times and started again", 0, 1, 3600, 1),
    "surroundings": Attack("a command in one bad surrounding", 0, 2, 900, 14),
}


@dataclass
class Row:
    """What came of an attack."""

    attack: str
    tried: int = 0
    held: int = 0
    seconds: float = 0.0

    @property
    def cells(self) -> list[str]:
        """Return the line of the table."""
        numbers = (self.tried, self.held, round(self.seconds))
        return [self.attack, ATTACKS[self.attack].words, *map(str, numbers)]


HEAD = ["attack", "a trial is", "tried", "held", "seconds"]


def carry_out(name: str, numbers: list[int] | itertools.count, seconds: float) -> Row:
    """Do the trials of an attack, endless ones until the time is over; what has begun is done to its end."""
    attack, row, lock = ATTACKS[name], Row(name), threading.Lock()
    began, left = time.monotonic(), iter(numbers)

    def take_turns() -> None:
        with Worker(name, attack.patience) as worker:
            # The first trial is always done.
            while attack.count or row.tried < attack.workers or time.monotonic() - began < seconds:
                with lock:
                    number = next(left, None)
                    if number is None:
                        return
                    row.tried += 1
                failure = worker.failure_of(number)
                with lock:
                    row.held += not failure
                if failure:
                    tell_failure(name, number, failure)

    turns = [threading.Thread(target=take_turns, daemon=True) for _ in range(attack.workers)]
    for turn in turns:
        turn.start()
    for turn in turns:
        turn.join()
    row.seconds = time.monotonic() - began
    return row


def tell_failure(name: str, number: int, failure: str) -> None:
    again = f"python tests/soak/run.py --only {name} --trial {number}"
    print(f"\n{name} did not hold: {failure}\n  again: {again}\n", flush=True)


def trial_numbers(attack: Attack, seed: int) -> list[int] | itertools.count:
    """Return the numbers of this seed; of few different trials, another seed begins elsewhere."""
    if attack.count is None:
        return itertools.count(seed * SPAN)
    return [(seed + place) % attack.count for place in range(attack.count)]


def table(rows: list[Row], markdown: bool) -> str:
    """Return the table, for people or for a page."""
    lines = [HEAD, *(row.cells for row in rows)]
    if markdown:
        lines.insert(1, ["---"] * 2 + ["---:"] * 3)
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = []
    for cells in lines:
        padded = [
            f"{cell:{w}}" if i < 2 else f"{cell:>{w}}"
            for i, (cell, w) in enumerate(zip(cells, widths, strict=True))
        ]
        shown.append("  ".join(padded))
    return "\n".join(shown)


def main() -> int:
    """Run the attacks that are asked for; return 1 if anything did not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(ATTACKS), help=f"some of {', '.join(ATTACKS)}")
    parser.add_argument("--minutes", type=float, default=6, help="for all attacks without end together (6)")
    parser.add_argument("--seed", type=int, default=0, help="which trials (0)")
    parser.add_argument("--trial", type=int, help="this trial alone")
    parser.add_argument("--markdown", action="store_true", help="print the table for docs/reliability.md")
    asked = parser.parse_args()
    names = [name.strip() for name in asked.only.split(",")]
    if unknown := [name for name in names if name not in ATTACKS]:
        parser.error(f"there is no attack {unknown[0]!r}; choose among {', '.join(ATTACKS)}")
    shares = sum(ATTACKS[name].share for name in names) or 1
    rows = []
    for name in names:
        print(f"==> {name}: {ATTACKS[name].words}", flush=True)
        seconds = asked.minutes * 60 * ATTACKS[name].share / shares
        numbers = trial_numbers(ATTACKS[name], asked.seed) if asked.trial is None else [asked.trial]
        rows.append(carry_out(name, numbers, seconds))
    print("\n" + table(rows, asked.markdown))
    # A trial that could not even be done has not held either.
    return int(any(row.held < max(row.tried, 1) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
