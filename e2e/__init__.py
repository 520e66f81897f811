"""End-to-end tests: a real Kubernetes on this machine, and what is tried on it."""
