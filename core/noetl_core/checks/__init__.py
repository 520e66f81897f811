"""The checks that need the whole playbook (rules A2, A5, A6, B4 and what belongs to them).

Each room takes a `Report`, looks at one side of the playbook and reports what it finds; none
depends on another's findings. `noetl_core.check` is the way in.
"""

from __future__ import annotations

from collections.abc import Mapping

from noetl_core.checks import (
    credentials,
    flow,
    inputs,
    keychain,
    names,
    overlays,
    policies,
    references,
    steps,
    visible,
)
from noetl_core.checks.report import Report
from noetl_core.load import Loaded
from noetl_core.problems import Problem
from noetl_core.tools import ToolKind

_ROOMS = (
    names.check,
    references.check,
    overlays.check,
    keychain.check,
    credentials.check,
    steps.check,
    inputs.check,
    policies.check,
    visible.check,
    flow.check,
)


def check_playbook(loaded: Loaded, kinds: Mapping[str, ToolKind]) -> list[Problem]:
    """What is wrong with a playbook as a whole, as far as it could be read."""
    if loaded.partial is None:
        return []
    report = Report(loaded, loaded.partial, kinds)
    for check in _ROOMS:
        check(report)
    return report.problems
