"""Steps of a ranking beside each other: `python benchmarks/recall_steps.py SCORES … [--mode both] [--part PART]`.

Each file of scores (`recall.py --scores`) is compared with the one before it, question by question: the mean gain, and the
middle 95 % of means over 10,000 samples of the questions, drawn with replacement (a paired bootstrap).

`--gate` also looks at the last file alone: it fails (exit 1) where, in a part, `both` finds less than the better of its two legs.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

SAMPLES = 10_000
FIGURES = ("recall", "ndcg")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--mode", default="both")
    parser.add_argument("--part", help="only conversations of this part")
    parser.add_argument("--gate", action="store_true", help="fail where `both` is below its better leg")
    options = parser.parse_args()
    steps = [(file.stem, json.loads(file.read_text())) for file in options.files]
    chosen = [(name, _figures(scores, options.mode, options.part)) for name, scores in steps]
    print("| step | R@10 / nDCG@10 | gain in R@10 | gain in nDCG@10 |\n|---|---:|---:|---:|")
    before: Any = None
    for name, figures in chosen:
        recall, ndcg = 100 * figures.mean(axis=0)
        print(f"| {name} | {recall:.1f} / {ndcg:.1f} | {' | '.join(_gains(before, figures))} |")
        before = figures
    if options.gate:
        sys.exit("\n".join(below_better_leg(steps[-1][1])) or None)


def _figures(scores: Sequence[dict[str, Any]], mode: str, part: str | None = None) -> Any:
    """A row of figures for each question, in one order for all files."""
    rows = [each for each in scores if each["mode"] == mode and part in (None, each["part"])]
    rows.sort(key=lambda each: (each["conversation"], each["question"]))
    return np.array([[each[figure] for figure in FIGURES] for each in rows])


def _gains(before: Any, after: Any) -> list[str]:
    if before is None:
        return ["", ""]
    gains = 100 * (after - before)
    drawn = np.random.default_rng(17).integers(0, len(gains), (SAMPLES, len(gains)))
    low, high = np.percentile(np.array([gains[sample].mean(axis=0) for sample in drawn]), [2.5, 97.5], axis=0)
    return [
        f"{mean:+.1f} ({a:+.1f} to {b:+.1f})"
        for mean, a, b in zip(gains.mean(axis=0), low, high, strict=True)
    ]


def below_better_leg(scores: Sequence[dict[str, Any]]) -> list[str]:
    """What `both` finds less of than its better leg, by part and figure."""
    found = []
    for part in dict.fromkeys(each["part"] for each in scores):
        keyword, semantic, both = (
            _figures(scores, mode, part).mean(axis=0) for mode in ("keyword", "semantic", "both")
        )
        for place, figure in enumerate(FIGURES):
            better = max(keyword[place], semantic[place])
            if both[place] < better:
                found.append(f"{part}: both has {figure} {both[place]:.4f}, its better leg {better:.4f}")
    return found


if __name__ == "__main__":
    main()
