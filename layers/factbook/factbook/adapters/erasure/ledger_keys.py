"""Where the ledger's keys are: a secret of the deployment, or a file on one machine."""

from pathlib import Path

from factbook.domain.errors import StorageUnavailable


class FileLedgerKeys:
    """The document in a file that its owner alone can read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def text(self) -> str:
        """Raises StorageUnavailable when the file cannot be read."""
        try:
            return self._path.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise StorageUnavailable from error
