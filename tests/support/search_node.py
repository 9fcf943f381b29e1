"""A real OpenSearch node for tests: jars from Maven Central, a process of this session, data in its temporary folder."""

import os
import shutil
import subprocess
import threading
from pathlib import Path

RECIPE = Path(__file__).parents[1] / "real" / "node"
FETCH_SECONDS = 600
START_SECONDS = 240


def why_not() -> str | None:
    """What this machine lacks to run a node, if anything."""
    missing = [tool for tool in ("mvn", "java", "javac") if shutil.which(tool) is None]
    return f"a search node needs {', '.join(missing)} on the PATH" if missing else None


class SearchNode:
    """Keeps its port and data when stopped and started again."""

    def __init__(self, home: Path) -> None:
        fetched = subprocess.run(
            [RECIPE / "fetch.sh"], check=True, stdout=subprocess.PIPE, text=True, timeout=FETCH_SECONDS
        )
        self._jars = fetched.stdout.strip().splitlines()[-1]
        self._home = home
        self._port = "0"
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        """Returns when the node answers; raises RuntimeError with its last words otherwise."""
        self._home.mkdir(parents=True, exist_ok=True)
        with (self._home / "stderr.log").open("ab") as log:
            self._process = subprocess.Popen(
                [RECIPE / "start.sh", self._jars, self._home, self._port],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={key: value for key, value in os.environ.items() if key != "JAVA_TOOL_OPTIONS"},
                text=True,
            )
        assert self._process.stdout is not None
        watchdog = threading.Timer(START_SECONDS, self._process.kill)
        watchdog.start()
        line = self._process.stdout.readline().strip()
        watchdog.cancel()
        if not line.startswith("http://"):
            self.stop()
            raise RuntimeError(f"no search node: {(self._home / 'stderr.log').read_text()[-2000:]}")
        self._port = line.rsplit(":", 1)[1]

    def stop(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
