"""The first lines of the page, in plain words: how firm it is, what ran, how close, which claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from smrmf_reproduce.report.paper import shown_name
from smrmf_reproduce.report.reading_choice import EXPERIMENT as CHOICE
from smrmf_reproduce.report.reading_choice import describe_choice, judging_methods
from smrmf_reproduce.report.reading_claims import ByReading, count_firm
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.score import Score
from smrmf_reproduce.report.table import NEAR, Cell, Table, Tables, count, exceeds, in_words, mean_cell
from smrmf_reproduce.report.verdicts import MET, UNTESTED, VERDICTS, Claim
from smrmf_reproduce.run.repeats import COMPARISON, REPEATS
from smrmf_reproduce.run.store import count_failed


def summarize(
    results: Results,
    tables: Tables,
    targets: Sequence[Claim],
    claims: Sequence[Claim],
    by_reading: ByReading,
) -> tuple[str, ...]:
    """Return a few lines in plain words: how firm, what ran, how close, which targets, which claims."""
    n_failed = count_failed(results.records)
    sets = sorted({run["data"] for run in results.records})
    methods = results.methods("comparison")
    n_runs = len(results.records)
    ran = (
        f"{count(n_runs, 'run')} on {count(len(sets), 'data set')}, {count(len(methods), 'method')} in the "
        f"comparison; {n_failed or 'none'} failed."
    )
    if results.n_to_do:
        ran += f" Not complete: {results.n_to_do} planned runs have no result yet."
    return (
        *_firmness(results, claims, by_reading),
        ran,
        closeness(tables["acc"], "ACC", results.paper.ours),
        closeness(tables["nmi"], "NMI", results.paper.ours),
        *([_targets_line(targets)] if targets else []),
        *([_claims_line(claims)] if claims else []),
    )


def _firmness(results: Results, claims: Sequence[Claim], by_reading: ByReading) -> list[str]:
    lines = [_repeats_line(results)] if results.methods(COMPARISON) else []
    reading = []
    if judging_methods(results):
        reading.append(
            "What the paper leaves open is read in one way for all. The rule: the reading that comes closest "
            f"to the paper's printed ACC of the methods compared, {', '.join(judging_methods(results))}, on "
            f"{count(len(results.data_sets(CHOICE)), 'set')}; figures of {' and '.join(results.paper.ours)} "
            f"have no say. {describe_choice(results)}{results.paper.remark('choice')}"
        )
    if by_reading and claims:
        reading.append(f"{count_firm(claims, by_reading)} ('Claims by reading').")
    return [*lines, *reading]


def _repeats_line(results: Results) -> str:
    """Say what the figures of repeated methods are, how far their repeats lie apart, what luck would add."""
    methods = results.methods(REPEATS)
    cells = {
        (data, method): results.best(COMPARISON, data, method)
        for data in results.data_sets(COMPARISON)
        for method in methods
    }
    spreads = {cell: score.std for cell, score in cells.items() if score.repeats and score.std is not None}
    if not spreads:
        return (
            "No figure has been repeated: one of a method without chance is a single draw, the best over its "
            "grid, and on another machine it may be another."
        )
    widest = max(spreads, key=lambda cell: spreads[cell])
    gains = [s.draw - s.value for s in cells.values() if s.draw is not None and s.value is not None]
    return (
        f"Figures of {', '.join(methods)} are means of {_numbers_of_repeats(list(cells.values()))} at the "
        f"best grid point, from starts that differ by {_perturbation(results)}: the algorithm amplifies "
        "rounding errors, so the same fit on another processor can end elsewhere. Standard deviation of ACC "
        f"over these runs: median {median(spreads.values()):.3f}, largest {spreads[widest]:.3f} "
        f"({widest[1]} on {shown_name(widest[0])}), over {count(len(spreads), 'cell')}. The best single run "
        f"over the grid, which the paper's protocol reports, is {median(gains):.3f} higher than that mean in "
        "the median cell."
    )


def _numbers_of_repeats(scores: Sequence[Score]) -> str:
    """Say how many runs the figures are means of, and how many cells have fewer, or only one run."""
    numbers = Counter(len(score.repeats) for score in scores if score.value is not None)
    single = numbers.pop(0, 0)
    fewest, most = min(numbers), max(numbers)
    text = f"{in_words(most)} runs" if fewest == most else f"{in_words(fewest)} to {in_words(most)} runs"
    fewer = sum(numbers.values()) - numbers[most]
    exceptions = [f"fewer than {in_words(most)} in {count(fewer, 'cell')}"] if fewer else []
    exceptions += [f"one run in {count(single, 'cell')}, where a fit takes minutes"] if single else []
    return f"{text} ({', '.join(exceptions)})" if exceptions else text


def _perturbation(results: Results) -> str:
    repeats = [run for run in results.records if REPEATS in run["experiments"]]
    sizes = {run["settings"]["perturbation"] for run in repeats if "perturbation" in run["settings"]}
    return " or ".join(f"{size:g}" for size in sorted(sizes)) + " of their size" if sizes else "rounding"


def closeness(table: Table, label: str, ours: Sequence[str]) -> str:
    """Return how many cells lie within 0.03 of the paper, above and below, and means of its own methods."""
    gaps = [
        cell.difference
        for row in table.rows
        if row.kind == "data"
        for cell in row.cells
        if cell.difference is not None
    ]
    if not gaps:
        return f"{label}: no cell to compare with the paper yet."
    above = sum(exceeds(gap, NEAR) for gap in gaps)
    below = sum(exceeds(-gap, NEAR) for gap in gaps)
    higher = sum(gap >= 0 for gap in gaps)
    line = (
        f"{label}: {count(len(gaps), 'cell')} that both have, {len(gaps) - above - below} within {NEAR} of "
        f"the paper, {above} higher than that, {below} lower; {higher} at or above the paper's value."
    )
    # Recomputed over the sets in both: the printed averages are over other sets (paper note 59).
    means = {method: mean_cell(list(table.column(method).values())) for method in ours}
    texts = [
        f"{method} {cell.ours:.3f} ({_best_runs(cell)}paper {cell.paper:.3f}, {cell.note})"
        for method, cell in means.items()
        if cell.ours is not None
    ]
    return f"{line} Mean over the sets in both: {'; '.join(texts)}." if texts else line


def _best_runs(cell: Cell) -> str:
    """Return what the paper's figure is to be compared with where ours is a mean of repeats."""
    return "" if cell.draw is None else f"best single runs {cell.draw:.3f}, "


def _targets_line(targets: Sequence[Claim]) -> str:
    met = [target for target in targets if target.verdict == MET]
    untested = [target for target in targets if target.verdict == UNTESTED]
    # Not tested is not missed: an incomplete evaluation says nothing on a target.
    missed = [target for target in targets if target not in met and target not in untested]
    line = f"Targets of this reproduction: {len(met)} of {len(targets)} met"
    line += f", {len(missed)} not met" if missed else ""
    line += f", {len(untested)} not tested" if untested else ""
    names = "; ".join(target.statement.rstrip(".") for target in missed)
    return f"{line}. Not met: {names}." if missed else f"{line}."


def _claims_line(claims: Sequence[Claim]) -> str:
    tally = Counter(claim.verdict for claim in claims)
    words = dict(zip(VERDICTS, ("hold", "hold in part", "do not hold", "not tested"), strict=True))
    counts = ", ".join(f"{tally[verdict]} {words[verdict]}" for verdict in VERDICTS)
    return f"The paper's {len(claims)} claims, judged on our runs by fixed rules: {counts}."
