"""Claims about scores and run times: who is best, what each ingredient brings, how fast it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from smrmf_reproduce.report.paper import MOONS, Paper
from smrmf_reproduce.report.table import Table, Tables, in_words
from smrmf_reproduce.report.verdicts import (
    FASTER,
    MARGIN,
    MIN_SETS,
    MUCH_FASTER,
    QUALITY_LOSS,
    UNTESTED,
    Judgement,
    all_or_some,
    compare,
    describe_comparison,
    sentences,
    speed_verdict,
)

MEASURES = {"ACC": "acc", "NMI": "nmi"}


def best_on_average(tables: Tables, paper: Paper) -> Judgement:
    """Judge: the paper's own methods have the best average ACC and NMI of all that it compares."""
    ours, n_methods = paper.ours, len(paper.methods)
    parts = len(MEASURES) * len(ours)
    rule = (
        f"Averages over the sets on which all {n_methods} methods have a result (at least {MIN_SETS}). "
        f"{in_words(parts).capitalize()} parts: {' and '.join(ours)}, each in ACC and in NMI, are at least "
        f"{MARGIN} above every one of the other {in_words(n_methods - len(ours))}. Holds: all "
        f"{in_words(parts)}; in part: at least one."
    )
    outcomes, texts = [], []
    for label, name in MEASURES.items():
        # Means compare over the same sets only; the printed averages are over 11 to 13 sets (paper note 59).
        sets = _common(tables[name], paper.methods)
        if len(sets) < MIN_SETS:
            texts.append(f"{label}: only {len(sets)} sets with all {n_methods} methods")
            continue
        means = {m: fmean(_values(tables[name], m, sets)) for m in paper.methods}
        # The best other method by its mean: to be above it is to be above every other one.
        rival = max((m for m in paper.methods if m not in ours), key=lambda m: means[m])
        outcomes += [means[method] - means[rival] >= MARGIN for method in ours]
        texts.append(f"{label} over {len(sets)} sets: {_ranking(tables[name], paper, means, rival, sets)}")
    return Judgement(rule, all_or_some(outcomes, parts), sentences(texts))


def _ranking(table: Table, paper: Paper, means: Mapping[str, float], rival: str, sets: list[str]) -> str:
    """Return means and ranks of the paper's own methods beside the best other one."""
    ours = ", ".join(f"{method} {means[method]:.3f}" for method in paper.ours)
    order = sorted(paper.methods, key=lambda m: -means[m])
    first, *others = (f"number {order.index(method) + 1}" for method in paper.ours)
    named = zip(paper.ours[1:], others, strict=True)
    ranks = ", ".join([f"{paper.main} is {first}", *(f"{method} {rank}" for method, rank in named)])
    gaps = compare(_differences(table, paper.main, rival, sets))
    return (
        f"{ours}, best other {rival} {means[rival]:.3f} ({ranks} of {len(order)}; "
        f"{describe_comparison(f'{paper.main} - {rival}', gaps)})"
    )


def beats(tables: Tables, paper: Paper, rival: str) -> Judgement:
    """Judge: the main method is above a rival on average, and on more sets above than below."""
    method, others = paper.main, paper.ours[1:]
    rule = (
        f"Four parts, over the sets both finished (at least {MIN_SETS}): in ACC and in NMI, {method}'s "
        f"average is at least {MARGIN} (half the paper's last digit) above {rival}'s, and {method} is that "
        "much higher on more sets than lower. Holds: all four; in part: some."
    ) + "".join(f" {other} is given for information." for other in others)
    outcomes, texts = [], []
    for label, table in MEASURES.items():
        sets = _common(tables[table], (method, rival))
        if len(sets) < MIN_SETS:
            texts.append(f"{label}: only {len(sets)} sets with both methods")
            continue
        found = compare(_differences(tables[table], method, rival, sets))
        # The mean can rest on one set, a count ignores sizes: both are asked for.
        outcomes += [found.mean >= MARGIN, found.n_higher > found.n_lower]
        text = describe_comparison(f"{label}, {method} - {rival}", found)
        for other in others:
            if both := _common(tables[table], (other, rival)):
                mean = fmean(_differences(tables[table], other, rival, both).values())
                text += f" ({other} - {rival}: {mean:+.3f})"
        texts.append(text)
    return Judgement(rule, all_or_some(outcomes, parts=4), sentences(texts))


def faster(tables: Tables, paper: Paper, method: str) -> Judgement:
    """Judge: a method speeds up the main one while preserving clustering quality."""
    slow = paper.main
    rule = (
        f"Holds: {slow}'s mean seconds are at least {MUCH_FASTER:g} times {method}'s, and no average of "
        f"{method} (ACC, NMI) is more than {QUALITY_LOSS} lower; in part: {MUCH_FASTER:g} times with a loss "
        f"of quality, or {FASTER:g} times without. Over the sets both finished, at least {MIN_SETS}."
    )
    sets = _common(tables["run_time"], (slow, method))
    if len(sets) < MIN_SETS:
        return Judgement(rule, UNTESTED, f"Only {len(sets)} sets with both methods.")
    losses = [_loss(tables[name], slow, method, sets) for name in MEASURES.values()]
    seconds = [_values(tables["run_time"], m, sets) for m in (slow, method)]
    # A ratio of means, as the paper's averages have it: large sets decide, where time matters. A mean of
    # ratios would give sets of a few milliseconds the same weight.
    ratio = fmean(seconds[0]) / fmean(seconds[1])
    per_set = [s / f for s, f in zip(*seconds, strict=True)]
    figures = (
        f"Mean {fmean(seconds[0]):.3g} s against {fmean(seconds[1]):.3g} s over {len(sets)} sets: "
        f"{ratio:.2g} times faster (by set {min(per_set):.2g} to {max(per_set):.2g} times"
        f"{_printed_ratio(paper, slow, method)}). Averages of {method} - {slow}: ACC {-losses[0]:+.3f}, NMI "
        f"{-losses[1]:+.3f}."
    )
    return Judgement(rule, speed_verdict(ratio, losses), figures)


def _printed_ratio(paper: Paper, slow: str, fast: str) -> str:
    seconds, fewer = paper.average("run-time", slow), paper.average("run-time", fast)
    return f"; the paper's averages give {seconds / fewer:.2g}" if seconds and fewer else ""


def better_on_moons(tables: Tables, paper: Paper, rival: str) -> Judgement:
    """Judge: the main method is above a rival on both moons sets."""
    method, names = paper.main, tuple(MOONS.values())
    rule = (
        f"Four parts: {method} at least {MARGIN} above {rival} in ACC and in NMI, on "
        f"{' and on '.join(names)}. Holds: all; in part: some."
    )
    outcomes, texts = [], []
    for name in names:
        ours, other = (tables["two_moons"].row(f"{name}, {m}") for m in (method, rival))
        for label in MEASURES:
            mine, theirs = ours[label].ours, other[label].ours
            if mine is None or theirs is None:
                texts.append(f"{name} {label}: missing")
                continue
            outcomes.append(mine - theirs >= MARGIN)
            texts.append(f"{name} {label}: {mine:.3f} against {theirs:.3f}")
    return Judgement(rule, all_or_some(outcomes, parts=4), sentences(texts))


def _common(table: Table, methods: Sequence[str]) -> list[str]:
    """Return the sets on which all these methods have a result of ours."""
    columns = [table.column(method) for method in methods]
    return [name for name in columns[0] if all(column[name].ours is not None for column in columns)]


def _values(table: Table, method: str, sets: list[str]) -> list[float]:
    column = table.column(method)
    return [value for name in sets if (value := column[name].ours) is not None]


def _differences(table: Table, first: str, second: str, sets: list[str]) -> dict[str, float]:
    # Strict: a set without a value would shift all pairs after it.
    pairs = zip(sets, _values(table, first, sets), _values(table, second, sets), strict=True)
    return {name: a - b for name, a, b in pairs}


def _loss(table: Table, method: str, other: str, sets: list[str]) -> float:
    """Return how much lower the average of another method is."""
    both = [name for name in sets if name in _common(table, (method, other))]
    return fmean(_differences(table, method, other, both).values()) if both else 0.0
