"""Retrieval: facts and messages by words, by meaning or both, and the memory block of a turn."""

from factbook.api.app import App
from factbook.api.retrieval import routes as retrieval
from factbook.wiring.services import services

app = App("retrieve", services)
retrieval.add_searches(app)
lambda_handler = app
