"""Claims about scores and run times: who is best, what each ingredient brings, how fast it is."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from smrmf_reproduce.report.paper import METHODS
from smrmf_reproduce.report.table import Table
from smrmf_reproduce.report.verdicts import (
    FASTER,
    MARGIN,
    MIN_SETS,
    MUCH_FASTER,
    QUALITY_LOSS,
    UNTESTED,
    Claim,
    all_or_some,
    comparison_text,
    more_up_than_down,
    sentences,
    speed_verdict,
)

Tables = Mapping[str, Table]
OURS = ("SMRMF", "f-SMRMF")
MEASURES = {"ACC": "acc", "NMI": "nmi"}


def best_on_average(tables: Tables) -> Claim:
    """Judge: SMRMF and f-SMRMF have the best average ACC and NMI among the fourteen methods."""
    rule = (
        f"Averages over the sets on which all 14 methods have a result (at least {MIN_SETS}). Four parts: "
        f"SMRMF and f-SMRMF, each in ACC and in NMI, are at least {MARGIN} above every one of the other "
        "twelve. Holds: all four; in part: at least one."
    )
    outcomes, texts = [], []
    for label, name in MEASURES.items():
        sets = _common(tables[name], METHODS)
        if len(sets) < MIN_SETS:
            texts.append(f"{label}: only {len(sets)} sets with all 14 methods")
            continue
        means = {m: fmean(_values(tables[name], m, sets)) for m in METHODS}
        rival = max((m for m in METHODS if m not in OURS), key=lambda m: means[m])
        outcomes += [means[method] - means[rival] >= MARGIN for method in OURS]
        ours = ", ".join(f"{method} {means[method]:.3f}" for method in OURS)
        rank = sorted(METHODS, key=lambda m: -means[m])
        gaps = _differences(tables[name], "SMRMF", rival, sets)
        texts.append(
            f"{label} over {len(sets)} sets: {ours}, best other {rival} {means[rival]:.3f} (SMRMF is number "
            f"{rank.index('SMRMF') + 1}, f-SMRMF number {rank.index('f-SMRMF') + 1} of 14; "
            f"{comparison_text(f'SMRMF - {rival}', gaps)})"
        )
    statement = "SMRMF and f-SMRMF achieve the best average ACC and NMI of all methods."
    return Claim("best-on-average", statement, rule, all_or_some(outcomes, parts=4), sentences(texts))


def kernel_beats_euclidean(tables: Tables) -> Claim:
    """Judge: kernel mapping is effective: SMRMF is above SMRMF-Euc on average."""
    statement = "Kernel mapping is effective: SMRMF outperforms SMRMF-Euc on average."
    return _beats(tables, "kernel", statement, "SMRMF-Euc")


def selection_beats_none(tables: Tables) -> Claim:
    """Judge: some neighbourhoods are detrimental: SMRMF is above SMRMF-NS on average."""
    statement = "Selecting neighbourhoods helps: SMRMF outperforms SMRMF-NS, which selects none, on average."
    return _beats(tables, "selection", statement, "SMRMF-NS")


def selection_beats_rmnmf(tables: Tables) -> Claim:
    """Judge: SMRMF is a considerable improvement over RMNMF."""
    statement = "SMRMF improves on RMNMF, which regularises with every neighbourhood of a fixed graph."
    return _beats(tables, "rmnmf", statement, "RMNMF")


def _beats(tables: Tables, name: str, statement: str, rival: str) -> Claim:
    rule = (
        f"Four parts, over the sets both finished (at least {MIN_SETS}): in ACC and in NMI, SMRMF's average "
        f"is at least {MARGIN} (half the paper's last digit) above {rival}'s, and SMRMF is that much higher "
        "on more sets than lower. Holds: all four; in part: some. f-SMRMF is given for information."
    )
    outcomes, texts = [], []
    for label, table in MEASURES.items():
        sets = _common(tables[table], ("SMRMF", rival))
        if len(sets) < MIN_SETS:
            texts.append(f"{label}: only {len(sets)} sets with both methods")
            continue
        gaps = _differences(tables[table], "SMRMF", rival, sets)
        outcomes += [fmean(gaps.values()) >= MARGIN, more_up_than_down(gaps)]
        text = comparison_text(f"{label}, SMRMF - {rival}", gaps)
        fast = _common(tables[table], ("f-SMRMF", rival))
        if fast:
            mean = fmean(_differences(tables[table], "f-SMRMF", rival, fast).values())
            text += f" (f-SMRMF - {rival}: {mean:+.3f})"
        texts.append(text)
    return Claim(name, statement, rule, all_or_some(outcomes, parts=4), sentences(texts))


def fast_at_equal_quality(tables: Tables) -> Claim:
    """Judge: f-SMRMF effectively speeds up SMRMF while preserving clustering quality."""
    rule = (
        f"Holds: SMRMF's mean seconds are at least {MUCH_FASTER:g} times f-SMRMF's, and no average of "
        f"f-SMRMF (ACC, NMI) is more than {QUALITY_LOSS} lower; in part: {MUCH_FASTER:g} times with a loss "
        f"of quality, or {FASTER:g} times without. Over the sets both finished, at least {MIN_SETS}."
    )
    statement = "f-SMRMF is much faster than SMRMF and preserves its clustering quality."
    sets = _common(tables["run_time"], OURS)
    losses = [_loss(tables[name], sets) for name in MEASURES.values()]
    if len(sets) < MIN_SETS:
        return Claim("fast", statement, rule, UNTESTED, f"Only {len(sets)} sets with both methods.")
    slow, fast = (fmean(_values(tables["run_time"], method, sets)) for method in OURS)
    ratio = slow / fast
    per_set = [
        s / f for s, f in zip(*(_values(tables["run_time"], method, sets) for method in OURS), strict=True)
    ]
    figures = (
        f"Mean {slow:.3g} s against {fast:.3g} s over {len(sets)} sets: {ratio:.2g} times faster (by set "
        f"{min(per_set):.2g} to {max(per_set):.2g} times; the paper's averages give 3.1). Averages of "
        f"f-SMRMF - SMRMF: ACC {-losses[0]:+.3f}, NMI {-losses[1]:+.3f}."
    )
    return Claim("fast", statement, rule, speed_verdict(ratio, losses), figures)


def moons(tables: Tables) -> Claim:
    """Judge: SMRMF is above RMNMF on both moons sets."""
    rule = (
        f"Four parts: SMRMF at least {MARGIN} above RMNMF in ACC and in NMI, on 2DMoons and on 10DMoons. "
        "Holds: all; in part: some."
    )
    statement = "On both moons sets SMRMF clusters better than RMNMF."
    outcomes, texts = [], []
    for name in ("2DMoons", "10DMoons"):
        ours, rival = (tables["two_moons"].row(f"{name}, {method}") for method in ("SMRMF", "RMNMF"))
        for label in MEASURES:
            mine, other = ours[label].ours, rival[label].ours
            if mine is None or other is None:
                texts.append(f"{name} {label}: missing")
                continue
            outcomes.append(mine - other >= MARGIN)
            texts.append(f"{name} {label}: {mine:.3f} against {other:.3f}")
    return Claim("moons", statement, rule, all_or_some(outcomes, parts=4), sentences(texts))


def _common(table: Table, methods: tuple[str, ...]) -> list[str]:
    """Return the sets on which all these methods have a result of ours."""
    columns = [table.column(method) for method in methods]
    return [name for name in columns[0] if all(column[name].ours is not None for column in columns)]


def _values(table: Table, method: str, sets: list[str]) -> list[float]:
    column = table.column(method)
    return [value for name in sets if (value := column[name].ours) is not None]


def _differences(table: Table, first: str, second: str, sets: list[str]) -> dict[str, float]:
    pairs = zip(sets, _values(table, first, sets), _values(table, second, sets), strict=True)
    return {name: a - b for name, a, b in pairs}


def _loss(table: Table, sets: list[str]) -> float:
    """Return how much lower f-SMRMF's average is than SMRMF's."""
    sets = [name for name in sets if name in _common(table, OURS)]
    return fmean(_differences(table, "SMRMF", "f-SMRMF", sets).values()) if sets else 0.0
