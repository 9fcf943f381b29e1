"""The composition root: the only module that makes clients and wires adapters to use cases."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from factbook.adapters.access.dynamodb_in_force import InForce
from factbook.adapters.access.dynamodb_tokens import DynamoAccess
from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.facts.s3_blobs import S3Blobs
from factbook.adapters.policy.dynamodb_policies import DynamoPolicies
from factbook.api.access.authentication import Authenticator, secret_digest, token_text
from factbook.api.cursors import Cursors
from factbook.domain.access.erasing import Erasing
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.errors import StorageUnavailable
from factbook.domain.facts.fact import Fact, StaleReason
from factbook.domain.strict_json import Json
from factbook.domain.times import format_instant
from factbook.ports.access.stores import Token
from factbook.ports.clock import Clock
from factbook.ports.deadline import NEVER
from factbook.settings import Settings, read_settings
from factbook.usecases.caches import TrustedAnswers
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.facts.upgrading import is_upgraded
from factbook.usecases.policy.policies import KnownPolicies

if TYPE_CHECKING:
    from factbook.ports.facts.joint import Change, OwnEntry
    from factbook.ports.facts.store import Head
    from factbook.ports.jobs import JobStore
    from factbook.ports.operations import Operation
    from factbook.usecases.access.sign_on import SignOn
    from factbook.usecases.memories.ports import MemoryPorts
    from factbook.usecases.provenance.joint import LoggedChanges
    from factbook.wiring.erasure.services import ErasureServices
    from factbook.wiring.facts.services import FactServices
    from factbook.wiring.log.services import LogServices
    from factbook.wiring.portability.services import PortabilityServices
    from factbook.wiring.retrieval.services import SearchServices
    from factbook.wiring.sources.services import SourceServices

from factbook.wiring.clients import make_client

ERASURES_AT_ONCE = 100
ERASING_SECONDS = 2.0
"""How long a process trusts what it read of a tenant's erasures. Whoever asks for one is answered when these have passed."""


def _reads_like_instruction(fact: Fact) -> bool:
    """The rules are loaded at the first fact they judge: most requests write none of an agent's."""
    from factbook.wiring.memories.services import reads_like_an_instruction

    return reads_like_an_instruction(fact)


class SystemClock:
    def now(self) -> str:
        return format_instant(datetime.now(UTC))


class Services:
    """Everything the routes of one function use; each part is made at first use."""

    def __init__(self, settings: Settings, clock: Clock | None = None, client: Any = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.deadline = NEVER
        self._make = client or make_client
        self._client = cache(self._timed)  # a client is slow to make, and shared by every port

    def _timed(self, service: str) -> Any:
        """A client that begins no call once the time of the request is over: nobody would hear of what it answers."""
        client = self._make(service)
        client.meta.events.register("before-call", self._require_time)
        return client

    def _require_time(self, **_: Any) -> None:
        self.deadline.require()

    @cached_property
    def access(self) -> DynamoAccess:
        return DynamoAccess(self._dynamodb, self.settings.access_table)

    @cached_property
    def authenticator(self) -> Authenticator:
        sign_on = self._signed_on if self.settings.oidc_issuer else None
        return Authenticator(self.access, self.clock, sign_on=sign_on)

    def _signed_on(self, token: str) -> Principal:
        if self.settings.sign_on_problem:
            raise StorageUnavailable(self.settings.sign_on_problem)
        return self._sign_on.principal(token)

    @cached_property
    def _sign_on(self) -> "SignOn":
        from factbook.wiring.access.sign_on import sign_on  # its library is slow to import

        return sign_on(self.settings, self.access)

    @cached_property
    def cursors(self) -> Cursors:
        from factbook.adapters.aes_gcm import AesGcm  # slow to import, and most requests have no cursor

        return Cursors(self._signing_key, AesGcm())

    @cached_property
    def memory(self) -> FactPorts:
        return FactPorts(
            facts=self._facts_store,
            blobs=S3Blobs(self._client("s3"), self.settings.blobs_bucket),
            clock=self.clock,
            signing_key=self._signing_key,
            policy=self.policies.policy,
            by_type=lambda: self._upgraded("facts") is not None,
            commit_with_entry=self._commit_with_entry,
            reads_like_instruction=_reads_like_instruction,
            require_room=self._require_room,
            unsettled=_report_unsettled,
            erasing=self.erasing,
            derives=self._derives,
            freshen=self._freshen,
            met_stale=self._met_stale,
        )

    @cached_property
    def erasing(self) -> TrustedAnswers[str, Erasing]:
        """What is being erased of a tenant, at most two seconds old."""
        return TrustedAnswers(InForce(self._dynamodb, self.settings.access_table).of, ERASING_SECONDS)

    def _derives(self, tenant: str, causes: Iterable[str]) -> bool:
        erasing = self.erasing(tenant)
        if not erasing.since:
            return False
        from factbook.usecases.erasure.reaching import caused_by_erased

        return caused_by_erased(self.logs.store, erasing, tenant, causes)

    @cached_property
    def _facts_store(self) -> DynamoFacts:
        return DynamoFacts(self._dynamodb, self.settings.facts_table)

    def _commit_with_entry(
        self, tenant: str, entry: "OwnEntry", operation: "Operation", change: "Callable[[str], Change]"
    ) -> "Head | None":
        return self._logged_changes.commit(tenant, entry, operation, change)

    @cached_property
    def _logged_changes(self) -> "LoggedChanges":
        """Imported at first use: most changes have no entry."""
        from factbook.adapters.provenance.dynamodb_joint import DynamoJoint
        from factbook.usecases.provenance.joint import LoggedChanges

        joint = DynamoJoint(self._dynamodb, self._facts_store, self.logs.store)
        return LoggedChanges(self.logs.log, joint)

    @cached_property
    def _upgraded(self) -> TrustedAnswers[str, bool | None]:
        """True for good, once no fact of the former format is left; None is asked for again."""
        return TrustedAnswers(lambda _: is_upgraded(self.jobs) or None, math.inf)

    @cached_property
    def memories(self) -> "MemoryPorts":
        from factbook.wiring.memories.services import memory_ports

        return memory_ports(self.memory, self._dynamodb, self.settings.facts_table)

    def _require_room(self, memory: Fact) -> None:
        from factbook.usecases.memories.remembering import require_room

        require_room(self.memories, memory)

    def standing_of_turn(
        self, principal: Principal, agent: str, scope: dict[str, str]
    ) -> Sequence[Fact] | None:
        from factbook.usecases.memories.standing import standing_of_turn

        return standing_of_turn(self.memories, principal, agent, scope)

    @cached_property
    def facts(self) -> "FactServices":
        """What follows and walks the facts; only functions that no request waits for need it."""
        from factbook.wiring.facts.services import FactServices

        return FactServices(self.settings, self._client, self.memory, self.jobs)

    @cached_property
    def jobs(self) -> "JobStore":
        from factbook.adapters.dynamodb_jobs import DynamoJobs

        return DynamoJobs(self._dynamodb, self.settings.access_table)

    @cached_property
    def logs(self) -> "LogServices":
        """What the log uses; imported at first use, as most requests are of facts."""
        from factbook.wiring.log.services import LogServices

        return LogServices(self.settings, self._client, erasing=self.erasing)

    @cached_property
    def erasures(self) -> "ErasureServices":
        """What only the erase function uses."""
        from factbook.wiring.erasure.services import ErasureServices

        return ErasureServices(self, self._client)

    @cached_property
    def portability(self) -> "PortabilityServices":
        """What only exports and imports use."""
        from factbook.wiring.portability.services import PortabilityServices

        return PortabilityServices(self, self._client, self._erasures_by_time, self._reindex)

    def _erasures_by_time(self, tenant: str, place: str | None) -> tuple[list[tuple[str, str]], str | None]:
        """Places and ids of a tenant's erasures behind a place, oldest first."""
        records = self.erasures.records
        found, following = records.page(tenant, place, ERASURES_AT_ONCE, oldest_first=True)
        return [(f"{each.created_at}|{each.id}", each.id) for each in found], following

    def _reindex(self) -> None:
        from factbook.usecases.retrieval.index_jobs import ask_for_repair

        ask_for_repair(self.jobs, self.clock)

    @cached_property
    def sources(self) -> "SourceServices":
        """What refreshes mirrored facts; imported at first use, as most facts are fresh or mirror nothing."""
        from factbook.wiring.sources.services import SourceServices

        return SourceServices(self.settings, self._client, self.memory, self.jobs, lambda: self.deadline)

    def _freshen(self, head: "Head", now: str) -> "tuple[Head | None, StaleReason | None]":
        return self.sources.on_read(head, now) if self.settings.refresh_function else (head, None)

    def _met_stale(self, facts: Sequence[Fact]) -> None:
        if facts and self.settings.refresh_queue:
            self.sources.met_stale(facts)

    @cached_property
    def policies(self) -> KnownPolicies:
        return KnownPolicies(DynamoPolicies(self._dynamodb, self.settings.access_table))

    @cached_property
    def searching(self) -> "SearchServices":
        """What only the functions with the search layer use; its libraries are imported here and nowhere else."""
        from factbook.wiring.retrieval.services import SearchServices

        return SearchServices(
            self.settings,
            self._client,
            self.clock,
            self.policies,
            self.memory,
            self.logs,
            self.facts.walk,
            self.jobs,
        )

    @cached_property
    def includes(self) -> Mapping[str, Callable[[Fact], Json]]:
        """What `?include=` adds to a fact, by the name that is asked for."""
        return {"indexState": self._index_state, "refreshState": self._refresh_state}

    def _index_state(self, fact: Fact) -> Json:
        from factbook.api.retrieval.views import index_state_json

        return index_state_json(self.searching, self.policies, fact)

    def _refresh_state(self, fact: Fact) -> Json:
        from factbook.api.sources.views import refresh_state_json

        return refresh_state_json(self.sources.states, fact)

    def _signing_key(self) -> bytes:
        return self._key

    @cached_property
    def _key(self) -> bytes:
        return self.access.cursor_key()

    @cached_property
    def _dynamodb(self) -> Any:
        return self._client("dynamodb")


def _report_unsettled(error: Exception) -> None:
    # Imported here: the commands wire services too, and have no library for logs.
    from factbook.api.telemetry import kind_of, logger

    logger.warning("a payload was neither kept nor removed", extra={"error": kind_of(error)})


@cache
def services() -> Services:
    """The services of this process, from its environment; what cannot work by it is said once in its log."""
    settings = read_settings()
    if settings.problems:
        from factbook.api.telemetry import logger  # as above

        logger.error("settings cannot be used", extra={"problems": settings.problems})
    return Services(settings)


def ensure_admin_token(wired: Services, tenant: str, token_id: str, secret: str, user: str = "admin") -> str:
    """The tenant's first administrator token, created unless it is there; its text."""
    wired.access.create_token(
        Token(
            id=token_id,
            secret_sha256=secret_digest(secret),
            principal=Principal(tenant, Actor(kind="user", id=user), admin=True),
            created_at=wired.clock.now(),
            created_by="service:setup",
        )
    )
    return token_text(token_id, secret)
