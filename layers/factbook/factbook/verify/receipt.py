"""Judge a receipt: one file that shows, with a public key alone, that a service stated an erasure and cannot take that back.

A receipt is the entry of the tenant's run `_erasures` that states the erasure, the entries up to the run's next
checkpointed head, that head's leaf with its way to a checkpoint's root, and the checkpoint, which is signed. Everything
in the file is held against what is signed; nothing else in it is believed, and nothing may be in it besides.
"""

import base64
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .chain import Chain, check_format, parse_entry, single
from .findings import Finding, Incomplete, Tampered, Unsupported
from .leaves import Leaf, read_hashes, read_leaf
from .notes import Checkpoint, VerifierKey, open_checkpoint
from .statement import Statement, read_statement
from .tree import includes

FORMAT = "factbook-receipt-v1"
RUN = "_erasures"
MOST_BYTES = 8 * 1024 * 1024
"""More than any answer of the service."""

_HASH = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


@dataclass
class ReceiptVerdict:
    """`code` 0 holds, 1 tampered, 2 incomplete, 3 unsupported; what is stated, only when it holds."""

    code: int = 0
    why: str = ""
    tenant: str = ""
    size: int = 0
    """Leaves the checkpoint signs for."""
    statement: Statement | None = None

    def to_json(self) -> dict[str, Any]:
        said = {"holds": self.code == 0, "code": self.code, "why": self.why}
        if self.statement is None:
            return said
        return said | {"tenant": self.tenant, "size": self.size, "statement": self.statement.fields}


def judge_receipt(path: Path, key: VerifierKey) -> ReceiptVerdict:
    """Judge the file. Raises OSError when it cannot be read."""
    try:
        return _judge(_read(path), key)
    except Finding as finding:
        return ReceiptVerdict(finding.code, finding.why)


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise Unsupported("the file is larger than any receipt")
    if not raw.strip():
        raise Incomplete("the file is empty")
    try:
        text = raw.decode("utf-8")
    except ValueError as error:
        raise Unsupported("the file is no text in UTF-8, so it is no receipt") from error
    if not text.lstrip().startswith("{"):
        raise Unsupported("the file is another kind of file: a receipt is a JSON object")
    try:
        return json.loads(text, object_pairs_hook=single)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
            raise Incomplete("the file is cut: it ends in the middle") from error
        raise Tampered("the file is no JSON") from error
    except (ValueError, RecursionError) as error:
        raise Tampered("the file is no JSON that has one meaning") from error


def _judge(receipt: dict[str, Any], key: VerifierKey) -> ReceiptVerdict:
    if "format" not in receipt and "error" in receipt:
        raise Incomplete("the file is the service's refusal: it had no receipt yet, or none at all")
    if receipt.get("format") != FORMAT:
        raise Unsupported(f"the file is no receipt of the format {FORMAT}")
    _exactly(receipt, {"format", "erasureId", "entry", "proof", "checkpoint", "vkey"}, "the receipt")
    own, stated = _stored(receipt["entry"])
    entry = parse_entry(own) or {}
    if entry.get("runId") != RUN or entry.get("kind") != "event-emitted":
        raise Tampered(f"the entry is none of the run {RUN}, where the service states erasures")
    tenant = entry.get("scope", {}).get("tenantId") if isinstance(entry.get("scope"), dict) else None
    if not isinstance(tenant, str) or entry["scope"] != {"tenantId": tenant}:
        raise Tampered("the entry does not say whose log it is of")
    proof = receipt["proof"]
    _exactly(proof, {"following", "leaf", "inclusion"}, "the proof")
    leaf = _leaf(proof["leaf"])
    chain = Chain(RUN, tenant, stated["sequence"] - 1, str(entry.get("prevHash"))[7:].encode())
    _follow(chain, own, stated)
    for following in _list(proof["following"]):
        _follow(chain, *_stored(following))
    if (leaf.run, leaf.sequence, leaf.head) != (RUN, chain.sequence, "sha256:" + chain.digest.decode()):
        raise Tampered("the leaf commits to another entry than the one that the proof ends with")
    checkpoint = _checkpoint(receipt, key, tenant)
    if not includes(leaf.hash, leaf.index, checkpoint.size, _hashes(proof["inclusion"]), checkpoint.root):
        raise Tampered("the leaf is not in the tree that the checkpoint signs for")
    statement = read_statement(entry.get("payload"))  # not before it is known to be what was signed
    if receipt["erasureId"] != statement["erasureId"]:
        raise Tampered("the receipt is of another erasure than its entry states")
    return ReceiptVerdict(0, "", tenant, checkpoint.size, statement)


def _checkpoint(receipt: dict[str, Any], key: VerifierKey, tenant: str) -> Checkpoint:
    note = receipt["checkpoint"]
    if not isinstance(note, str):
        raise Tampered("the checkpoint is no signed note")
    checkpoint = open_checkpoint(note, key, tenant)
    if receipt["vkey"] != key.text:
        raise Tampered("the receipt names another key than the one that signed")
    return checkpoint


def _stored(form: Any) -> tuple[bytes, dict[str, Any]]:
    """The text of an entry in its stored form, and that form."""
    _exactly(form, {"sequence", "format", "entryHash", "canonical"}, "an entry")
    check_format(str(form["format"]))
    if type(form["sequence"]) is not int or form["sequence"] < 0:
        raise Tampered("an entry has no place in its run")
    if not isinstance(form["canonical"], str) or not _HASH.fullmatch(str(form["entryHash"])):
        raise Tampered("an entry is incomplete")
    return form["canonical"].encode("utf-8", "surrogatepass"), form


def _follow(chain: Chain, text: bytes, form: dict[str, Any]) -> None:
    chain.follow(text, form["entryHash"][7:].encode())
    if form["sequence"] != chain.sequence:
        raise Tampered("an entry stands at another place than its text says")


def _leaf(form: Any) -> Leaf:
    _exactly(form, {"index", "runId", "sequence", "head", "salt"}, "the leaf")
    if not isinstance(form["salt"], str):
        raise Tampered("the leaf has no salt")
    names = {"leaf": "index", "run": "runId", "seq": "sequence", "head": "head", "salt": "salt"}
    leaf = read_leaf({name: form[own] for name, own in names.items()})
    if leaf.salt.hex() != form["salt"]:
        raise Tampered("the leaf's salt is not written as the service writes it")
    return leaf


def _hashes(texts: Any) -> tuple[bytes, ...]:
    hashes = read_hashes(_list(texts))
    if [base64.b64encode(each).decode() for each in hashes] != texts:
        raise Tampered("a hash of the proof is not written as the service writes it")
    return hashes


def _exactly(form: Any, names: set[str], what: str) -> None:
    if not isinstance(form, dict) or form.keys() != names:
        raise Tampered(f"{what} has other fields than {', '.join(sorted(names))}")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Tampered("the proof is incomplete")
    return value
