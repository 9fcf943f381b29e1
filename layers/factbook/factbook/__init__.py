"""Agent memory on serverless AWS: typed, versioned facts and a tamper-evident log."""

SCHEMA_VERSION = "1.3.0"
__version__ = "0.1.0"
