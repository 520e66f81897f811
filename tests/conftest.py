"""What all tests share: the profiles of the property tests, chosen by `HYPOTHESIS_PROFILE`."""

import os

from hypothesis import HealthCheck, settings

from tests.support.postgres import postgres_server, postgres_uri

__all__ = ["postgres_server", "postgres_uri"]

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "default", max_examples=300, deadline=None, print_blob=True, suppress_health_check=_SLOW
)
settings.register_profile(
    "nightly", max_examples=6_000, deadline=None, print_blob=True, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
