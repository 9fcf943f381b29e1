"""How far the graph behind a fact goes, on the use cases over fakes."""

from support.fakes import FakeClock, fake_memory
from support.log_fakes import FakeKeys, FakeLog, FakeWrapper
from support.principals import principal

from factbook.adapters.aes_gcm import AesGcm
from factbook.domain.facts.fact import FactChanges
from factbook.domain.scope import Scope
from factbook.ports.operations import Operation
from factbook.usecases.facts import changes as facts
from factbook.usecases.facts.payloads import Content
from factbook.usecases.log.sealing import Vault
from factbook.usecases.provenance.tracing import MAX_NODES, trace_provenance

ADMIN = principal("t", "ann", admin=True)


def graph_of(revisions: int, causes: int) -> dict[str, object]:
    """The provenance of a fact of so many revisions, the newest with so many causes."""
    memory = fake_memory(FakeClock())
    fact = facts.write_fact(
        memory, ADMIN, Operation("0", "b"), "note", Scope(tenantId="t"), FactChanges(), Content(0)
    )
    for number in range(1, revisions):
        said = [f"run:{cause}:nonce" for cause in range(causes)] if number == revisions - 1 else []
        facts.supersede_fact(
            memory,
            ADMIN,
            Operation(str(number), "b"),
            fact.id,
            FactChanges(causedByLogId=said),
            Content(number),
        )
    vault = Vault(FakeKeys(), FakeWrapper(), AesGcm())
    return trace_provenance(memory, FakeLog(), vault, ADMIN, fact.id)


def test_a_graph_ends_at_two_hundred_nodes_nearest_first_and_says_so() -> None:
    graph = graph_of(revisions=230, causes=50)
    nodes = graph["nodes"]
    assert (len(nodes), graph["truncated"]) == (MAX_NODES, True)
    assert [node["node"] for node in nodes[:52]] == ["fact", *["unavailable"] * 50, "fact"]
    assert [node["version"] for node in nodes if node["node"] == "fact"] == list(range(230, 80, -1))
    named = {node["id"] for node in nodes}
    assert all(edge["from"] in named and edge["to"] in named for edge in graph["edges"])


def test_a_graph_of_exactly_two_hundred_nodes_is_whole() -> None:
    graph = graph_of(revisions=190, causes=10)
    assert (len(graph["nodes"]), graph["truncated"]) == (MAX_NODES, False)
    assert len(graph["edges"]) == MAX_NODES - 1
