"""What all tests share: the profiles of the property tests, chosen by `HYPOTHESIS_PROFILE`."""

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "default", max_examples=300, deadline=None, print_blob=True, suppress_health_check=_SLOW
)
settings.register_profile(
    "nightly", max_examples=6_000, deadline=None, print_blob=True, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
