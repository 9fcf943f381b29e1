"""The text a checkpoint signs, and the C2SP note around it (https://c2sp.org/signed-note, …/tlog-checkpoint)."""

import base64
import hashlib
from dataclasses import dataclass
from urllib.parse import quote

ED25519 = b"\x01"


@dataclass(frozen=True)
class NoteKey:
    """The public half of a signing key under a name; names hold no space and no plus sign."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        return hashlib.sha256(self.name.encode() + b"\n" + ED25519 + self.public).digest()[:4]

    @property
    def vkey(self) -> str:
        """What a verifier is given: `<name>+<id in hex>+base64(0x01 ‖ public key)`."""
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(ED25519 + self.public).decode()}"

    def note(self, text: str, signature: bytes) -> str:
        return f"{text}\n— {self.name} {base64.b64encode(self.id + signature).decode()}\n"


def origin_of(name: str, tenant: str) -> str:
    """The first line of a tenant's checkpoints: which log they are about. It begins with the name of the signing key."""
    return f"{name}/t/{quote(tenant, safe='')}"


def checkpoint_text(origin: str, size: int, root: bytes) -> str:
    """The text that is signed: origin, size and root, a line each. It holds no time, so one tree always gives one note."""
    return f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n"
