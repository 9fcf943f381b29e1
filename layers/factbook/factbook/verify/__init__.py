"""The offline verifier: judges exported logs with a public key, and trusts nothing else.

Needs the standard library and `cryptography` only, and imports nothing else of factbook: this folder can be lifted out.
`python -m factbook.verify run FILE --vkey KEY` and `… audit FILE --vkey KEY` judge a file.
"""

from .findings import Finding, Incomplete, Tampered, Unsupported
from .judges import Verdict, audit, verify_run
from .notes import Checkpoint, VerifierKey, open_checkpoint, read_key

__all__ = [
    "Checkpoint",
    "Finding",
    "Incomplete",
    "Tampered",
    "Unsupported",
    "Verdict",
    "VerifierKey",
    "audit",
    "open_checkpoint",
    "read_key",
    "verify_run",
]
