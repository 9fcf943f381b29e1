"""The data plane: ministack in a process of its own, whose state is saved together and restored whole."""
