"""Take the seconds that forecasts start from out of the records of a full reproduction.

``python benchmarks/usual_seconds.py reproduction`` writes ``src/smrmf_reproduce/papers/smrmf_seconds.csv``:
the mean seconds of a run by method and data set. Worth a call whenever ``docs/reproduction`` is replaced; an
old file makes first forecasts worse and nothing else.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from smrmf_reproduce.run.forecast import USUAL_SECONDS
from smrmf_reproduce.run.store import DONE


def main() -> None:
    parser = argparse.ArgumentParser(prog=Path(__file__).name, description=__doc__)
    parser.add_argument("folder", type=Path, help="the --output of smrmf reproduce, with its runs/")
    parser.add_argument("--output", type=Path, default=USUAL_SECONDS, help="default: in the package")
    given = parser.parse_args()
    cells: dict[tuple[str, str], list[float]] = defaultdict(list)
    for path in (given.folder / "runs").glob("*.json"):
        record = json.loads(path.read_bytes())
        if record["status"] == DONE:
            cells[record["method"], record["data"]].append(record["spent"])
    lines = [f"{method},{data},{fmean(spent):.3g}" for (method, data), spent in sorted(cells.items())]
    given.output.write_text("\n".join(["method,data,seconds", *lines, ""]), encoding="utf8")
    print(f"{len(lines)} cells in {given.output}")


if __name__ == "__main__":
    main()
