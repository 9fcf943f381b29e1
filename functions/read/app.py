"""Reads: facts, the log, tokens, the policy, and what the service says of itself."""

from factbook.api import health
from factbook.api.access import routes as access
from factbook.api.app import App
from factbook.api.facts import routes as facts
from factbook.api.log import routes as log
from factbook.api.memories import routes as memories
from factbook.api.policy import routes as policy
from factbook.api.portability import routes as portability
from factbook.api.provenance import routes as provenance
from factbook.api.retrieval import routes as retrieval
from factbook.wiring.services import services

app = App("read", services)
for capability in (health, access, facts, memories, log, policy, provenance, retrieval, portability):
    capability.add_reads(app)
lambda_handler = app
