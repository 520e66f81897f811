"""The embedded run: the whole product in a few processes on this machine, without a cluster."""
