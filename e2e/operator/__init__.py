"""The operator on a real API server."""
