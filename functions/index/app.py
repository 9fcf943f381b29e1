"""The search index follows the tables, and what is left of removed facts goes."""

from factbook.adapters.facts.dynamodb_stream import fact_records
from factbook.adapters.log.dynamodb_entries import entry_records
from factbook.api.retrieval.events import IndexEvents
from factbook.wiring.services import services

lambda_handler = IndexEvents(services, fact_records, entry_records)
