"""The local runner: the deployed functions behind a gateway, on a data plane of this machine. Never deployed."""
