"""Erasures: requests about them, and the worker that carries them out."""

from factbook.api.app import App
from factbook.api.erasure.events import ErasureEvents
from factbook.api.erasure.ledger import add_ledger
from factbook.api.erasure.routes import add_erasures
from factbook.wiring.services import services

app = App("erase", services)
add_ledger(app)
add_erasures(app)
lambda_handler = ErasureEvents(app, lambda: services().erasures)
