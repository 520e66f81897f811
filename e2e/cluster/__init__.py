"""A real Kubernetes for the tests, built from Go modules and Debian packages.

Every cluster lives in a network namespace of its own that has no route out, with all its state in
one folder. Tests take the `cluster` fixture; a person says `python -m e2e.cluster up`.
"""

from e2e.cluster.cluster import Cluster
from e2e.cluster.errors import ClusterError, KubectlError, Unsupported
from e2e.cluster.existing import Existing
from e2e.cluster.host import supported
from e2e.cluster.kube import Kubernetes

__all__ = [
    "Cluster",
    "ClusterError",
    "Existing",
    "KubectlError",
    "Kubernetes",
    "Unsupported",
    "supported",
]
