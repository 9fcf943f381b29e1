"""Who may read and write what, said a second time in the fewest words, and hostile names to try it with.

The model works on grants and scopes as they stand in JSON and shares no code with the service.
"""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from factbook.domain.fields import PATH_ID

Json = dict[str, Any]


@dataclass(frozen=True)
class Grants:
    """A principal as an administrator describes it: user name (none for a service), admin, projects, orgs."""

    user: str | None = None
    admin: bool = False
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    reads_orgs: frozenset[str] = frozenset()
    administers_orgs: frozenset[str] = frozenset()


def may_read(who: Grants, scope: Json) -> bool:
    project, org, user = scope.get("projectId"), scope.get("orgId"), scope.get("userId")
    place = (
        project in who.reads | who.writes
        if project
        else not org or org in who.reads_orgs | who.administers_orgs
    )
    talk = "participantId" in scope or "threadId" in scope
    trusted = project in who.writes if project else user is not None
    return who.admin or (place and user in (None, who.user) and (trusted or not talk))


def may_write(who: Grants, scope: Json) -> bool:
    project, org, user = scope.get("projectId"), scope.get("orgId"), scope.get("userId")
    place = project in who.writes if project else org in who.administers_orgs if org else user is not None
    return who.admin or (place and may_read(who, scope))


# Delimiters of keys, prefixes of each other, wildcards, escapes, look-alikes, too long to be a key as they are.
NAMES = [
    "p", "p|", "p|0", "|p", "p|closed", "P:p", "U:p", "T", "A", "O:T", "W:p", "p%", "p%7C", "p%257C", "%", "%25", "~", "~p",
    "%7Ep", "*", "p*", "?", "[p]", "p p", " p", "p ", "p/q", "../p", "p\x00", "p\n", '"p"', "p'--", "p\\", "{p}", "$p", "pp",
    "é", "e\u0301", "ｐ", "р", "p\u200b", "\u202ep", "ß", "ss", "K", "\u212a", "0", "00", "null", "x" * 256, "x" * 255,
    "😀" * 100, "😀" * 101, "%" * 100, "|" * 256, "h",
]  # fmt: skip

KEYS = ("userId", "orgId", "projectId", "threadId", "sessionId", "participantId")

names = st.sampled_from(NAMES)
# A few names for a whole case: principals and scopes must meet, and must meet under the wrong kind too.
palettes = st.lists(names, min_size=1, max_size=4, unique=True)


def scopes(palette: list[str]) -> st.SearchStrategy[Json]:
    """Scopes without a tenant; a participant always has a project. One number names one: drawing stays cheap."""
    choices = [None, *palette]

    def scope(number: int) -> Json:
        place: Json = {}
        for key in KEYS:
            number, choice = divmod(number, len(choices))
            name = choices[choice]
            if name is not None:
                place[key] = _in_a_path(name) if key == "threadId" else name
        return {"projectId": place["participantId"], **place} if "participantId" in place else place

    return st.integers(0, len(choices) ** len(KEYS) - 1).map(scope)


def _in_a_path(name: str) -> str:
    """A thread has a name that a path can carry: the same name always gives the same one."""
    return name if PATH_ID.fullmatch(name) else f"n{NAMES.index(name)}"


def grants(palette: list[str]) -> st.SearchStrategy[Grants]:
    some = st.frozensets(st.sampled_from(palette), max_size=3)
    user = st.none() | st.sampled_from(palette)
    admin = st.sampled_from([False] * 9 + [True])
    return st.builds(
        Grants, user=user, admin=admin, reads=some, writes=some, reads_orgs=some, administers_orgs=some
    )
