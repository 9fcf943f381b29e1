"""What reads like an instruction, measured: `python benchmarks/instructions.py [--texts FILE …] [--misses]`.

Prints, for each part of the labelled texts, how many instructions wait and how many plain texts do, by language and by
kind; with `--misses` also each text that is judged wrongly, and the rules that a waiting plain text met. A file of your own has
the form of `tests/unit/memories/instruction_texts/*.json`: `{"instructions": [[language, kind, text], …], "plain": […]}`.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from factbook.domain.memories.instructions import reads_like_instruction, rules_met

TEXTS = Path(__file__).parents[1] / "tests" / "unit" / "memories" / "instruction_texts"
Row = tuple[str, str, str]
LONG_MEMORY = (
    "Ana prefers trains, reads the reports on Monday and never flies. " * 31
)  # the longest that may be remembered


def rates(rows: list[Row], column: int) -> Iterator[str]:
    """One `name waiting/all` for each language (column 0) or kind (column 1)."""
    total = Counter(row[column] for row in rows)
    waiting = Counter(row[column] for row in rows if reads_like_instruction(row[2]))
    yield from (f"{name} {waiting[name]}/{count}" for name, count in sorted(total.items()))


def print_part(name: str, part: dict[str, list[Row]], *, misses: bool) -> None:
    print(f"\n{name}")
    for label, rows in part.items():
        waiting = [row for row in rows if reads_like_instruction(row[2])]
        print(f"  {label}: {len(waiting)} of {len(rows)} wait, {len(waiting) / len(rows):.1%}")
        print(f"    by language: {', '.join(rates(rows, 0))}")
        print(f"    by kind: {', '.join(rates(rows, 1))}")
        if misses:
            wrong = [row for row in rows if (row in waiting) != (label == "instructions")]
            for language, kind, text in wrong:
                met = ", ".join(dict.fromkeys(rule.name for rule in rules_met(text)))
                print(f"    {language} {kind} {text!r} {met}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Rates of what reads like an instruction.")
    parser.add_argument("--texts", type=Path, nargs="+", default=sorted(TEXTS.glob("*.json")))
    parser.add_argument("--misses", action="store_true")
    arguments = parser.parse_args()
    began = time.process_time()
    reads_like_instruction("read the words first")
    words_read = time.process_time()
    reads_like_instruction(LONG_MEMORY[:2000])
    print(
        f"reading the words {1000 * (words_read - began):.0f} ms, "
        f"judging 2,000 characters {1000 * (time.process_time() - words_read):.0f} ms of processor time"
    )
    for path in arguments.texts:
        print_part(path.stem, json.loads(path.read_text()), misses=arguments.misses)


if __name__ == "__main__":
    main()
