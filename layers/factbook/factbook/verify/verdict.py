"""What was checked, and whether it holds."""

from dataclasses import asdict, dataclass
from typing import Any

HOLDS = 0


@dataclass
class Verdict:
    """`code` 0 holds, 1 tampered, 2 incomplete, 3 unsupported; what was checked; and where it fails."""

    code: int = HOLDS
    why: str = ""
    run: str | None = None
    sequence: int | None = None
    line: int | None = None
    entries: int = 0
    runs: int = 0
    leaves: int = 0
    checkpoints: int = 0
    newer: int = 0
    """Entries behind the last checkpointed head of their run: chained, but not yet signed for."""
    size: int = 0
    """Leaves the newest checkpoint signs for."""

    @property
    def holds(self) -> bool:
        return self.code == HOLDS

    def to_json(self) -> dict[str, Any]:
        return {"holds": self.holds} | {
            key: value for key, value in asdict(self).items() if value is not None
        }
