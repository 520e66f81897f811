"""The data plane: leases step-runs, runs their pipelines with the tools, reports every fact."""

import sys

# httpx brings a command line of its own and imports rich and pygments for it, which would be a
# third of a worker's start; it does without where that module is not to be had.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None: not importable
