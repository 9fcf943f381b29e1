"""Checkpoints of the log: runs that grew are marked, put into the tree and signed for."""

from factbook.adapters.log.dynamodb_stream import log_records
from factbook.api.log.events import CheckpointEvents
from factbook.wiring.services import services

lambda_handler = CheckpointEvents(lambda: services().logs, log_records)
