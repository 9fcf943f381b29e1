"""Writes: facts, log entries, checkpoints, API tokens and the policy."""

from factbook.api.access import routes as access
from factbook.api.app import App
from factbook.api.facts import routes as facts
from factbook.api.log import routes as log
from factbook.api.memories import routes as memories
from factbook.api.policy import routes as policy
from factbook.api.portability import routes as portability
from factbook.wiring.services import services

app = App("write", services)
for capability in (facts, memories, log, access, policy, portability):
    capability.add_writes(app)
lambda_handler = app
