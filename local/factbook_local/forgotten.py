"""The demo's last chapter: a person asks to be forgotten."""

from .story import Story, chapter, check, factbook, say, show

SETTLE_SECONDS = 3
"""What an erasure waits for keys and calls of before it; a minute where others write."""

WORDS = "My flat is at 12 Elm Street."


def tell_erasure(story: Story) -> None:
    chapter(
        "A person asks to be forgotten; nothing of theirs is found, the history still holds, and a receipt shows it"
    )
    eve = story.new_token("user", "eve")
    scope = {"userId": "eve"}
    entries = {"entries": [{"kind": "user-message", "scope": scope, "payload": {"text": WORDS}}]}
    status, appended = story.call("POST", "/v1/memory/runs/eve-1/log", entries, token=eve)
    check(status == 201, "what she says is logged")
    note = {"type": "acme.note", "scope": scope, "content": {"text": WORDS}}
    fact = story.call("POST", "/v1/memory/facts", note, token=eve)[1]
    show("eve says where she lives; it is logged, and kept as a fact", f"version {fact['version']}")
    query = {"mode": "keyword", "query": "12 Elm Street", "type": "acme.note"}
    known = query | {"after": [{"id": fact["id"], "version": 1}]}
    found = story.search(known)[1]["results"]
    check([each["fact"]["id"] for each in found] == [fact["id"]], "it is found by her words")
    show("retrieve: '12 Elm Street'", f"{len(found)} result")
    derived = {
        "type": "acme.route",
        "content": "Elm Street twice a week",
        "causedByLogId": [appended["entries"][0]["id"]],
    }
    route = story.call("POST", "/v1/memory/facts", derived)[1]
    before = story.folder / "before.ndjson"
    code, line = factbook(story, "log", "export", "--all", "--out", str(before))
    check(code == 0 and WORDS.encode() not in before.read_bytes(), "an export holds her words sealed")
    show("factbook log export --all", line)
    say(
        f"  factbook erasure create --user eve --wait (it settles {SETTLE_SECONDS} s here, a minute in use) …"
    )
    code, line = factbook(story, "erasure", "create", "--user", "eve", "--yes", "--wait", "--quiet")
    check(code == 0 and " completed " in line, "the erasure ends")
    erasure = line.split()[0]
    show("  it is completed", line.rpartition("): ")[2])
    status, answer = story.call("GET", f"/v1/memory/facts/{fact['id']}")
    show("an administrator asks for her fact", f"HTTP {status} {answer['error']['code']}")
    check(status == 404, "her fact is gone")
    (entry,) = story.call("GET", "/v1/memory/runs/eve-1/log")[1]["data"]
    check("payloadErasedAt" in entry and WORDS not in str(entry), "her words cannot be read")
    show("her entry of the log", f"payload erased at {entry['payloadErasedAt'][:19]}")
    found = story.call("POST", "/v1/memory/retrieve", query)[1]["results"]
    check(found == [], "no search finds her words")
    show("retrieve: '12 Elm Street'", f"{len(found)} results")
    (review,) = story.call("GET", "/v1/memory/reviews")[1]["data"]
    check(review["fact"]["id"] == route["id"], "what was derived from her words waits")
    show("what was derived from her words waits in review", review["why"])
    code, line = factbook(story, "log", "audit", str(before), "--vkey", story.ready.vkey)
    check(code == 0, "the export of before still holds")
    show(
        "factbook log audit, of the export of before",
        f"exit {code}: {line}; her words in it have no key any more",
    )
    receipt = story.folder / "receipt.json"
    code, line = factbook(story, "erasure", "receipt", erasure, "--out", str(receipt), "--wait", "--quiet")
    check(code == 0, "there is a receipt")
    code, line = factbook(story, "erasure", "verify", str(receipt), "--vkey", story.ready.vkey)
    check(code == 0, "the receipt holds")
    show("factbook erasure verify (offline, one public key)", f"exit {code}: {line}")
