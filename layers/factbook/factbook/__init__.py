"""Agent memory on serverless AWS: typed, versioned facts and a tamper-evident log."""

SCHEMA_VERSION = "1.3.0"
