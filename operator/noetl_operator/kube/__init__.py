"""The operator's Kubernetes side: what it watches, what it makes, what it says."""
