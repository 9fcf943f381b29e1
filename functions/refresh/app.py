"""Mirrored facts are refreshed: by hand, for who reads them, and when they are due."""

from factbook.api.app import App
from factbook.api.sources import routes as sources
from factbook.api.sources.events import RefreshEvents
from factbook.wiring.services import services

app = App("refresh", services)
sources.add_refreshes(app)
lambda_handler = RefreshEvents(app, services)
