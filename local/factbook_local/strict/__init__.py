"""A cloud as strict as AWS: every SDK client made after `install` refuses what AWS documents as refused.

Emulators take items, pages and payloads of any size. Here a client answers what the service would answer: the same
error code, the same cut page. The product's code does not know; nothing of this is deployed. `limits.py` is the table
of what is enforced, with the page of the AWS documentation that says so.
"""

import botocore.handlers

from factbook_local.strict.client import HOOK


def install() -> None:
    """From here on, every SDK session that starts makes strict clients. May be called twice.

    Sessions read this list when they start: it is the place where an emulator hooks itself in, too.
    """
    if HOOK not in botocore.handlers.BUILTIN_HANDLERS:
        botocore.handlers.BUILTIN_HANDLERS.append(HOOK)
