"""Rule K2 under attack: size, depth, aliases, noise; a clear error at once, in a process of its
own."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from noetl_core.load import load

_PROGRAM = """
import json, resource, sys, time
from noetl_core.load import load
data = eval(sys.argv[1])
began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
problems = [p.as_json() for one in load(data) for p in one.problems]
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
seconds, megabytes = time.process_time() - began, (after - before) / 1024
print(json.dumps({"seconds": seconds, "megabytes": megabytes, "problems": problems[:3]}))
"""

CASES = {
    "50 MB": "b'a: ' + b'x' * 50_000_000",
    "10,000 lists deep": "'a: ' + '[' * 10_000 + ']' * 10_000",
    "100,000 lists deep, never closed": "'[' * 100_000",
    "100,000 mappings deep": "'{a: ' * 100_000",
    "10,000 blocks deep": "'- ' * 10_000 + 'a'",
    "a thousand indentations": "'\\n'.join(' ' * i + 'a:' for i in range(1000))",
    "10,000 complex keys": "'? ' * 10_000 + 'a'",
    "a billion laughs": "'a0: &a0 [x, x]\\n' + ''.join("
    "f'a{i}: &a{i} [' + ', '.join([f'*a{i - 1}'] * 9) + ']\\n' for i in range(1, 30))",
    "laughs in merge keys": "'a0: &a0 {x: 1}\\n' + ''.join("
    "f'a{i}: &a{i} {{<<: [' + ', '.join([f'*a{i - 1}'] * 9) + ']}\\n' for i in range(1, 30))",
    "a ladder of aliases": "'a0: &a0 [x]\\n' + ''.join("
    "f'a{i}: &a{i} [*a{i - 1}]\\n' for i in range(1, 600))",
    "a million values": "'a: [' + '1,' * 1_000_000 + ']'",
    "a million duplicates": "'a: 1\\n' * 700_000",
    "a million tags": "'a: [' + '!x 1,' * 190_000 + ']'",
    "a line of 4 MB": "'a: \"' + 'x' * 4_000_000",
    "a thousand documents too many": "'--- {}\\n' * 5_000",
    "old words nested in old words": "'metadata: {name: p}\\nworkflow: [{step: a, case: ' "
    "+ '{pipe: ' * 80 + '[' + '{query: 1, kind: x},' * 20_000 + ']' + '}' * 80 + '}]'",
    "a large step in old words": "'metadata: {name: p}\\nworkflow: [{step: a, when: x, vars: {}, '"
    "'case: [], pipe: [' + '{a: {tool: {kind: x}}},' * 20_000 + ']}]'",
    "braces in SQL": "'metadata: {name: p}\\nworkflow: [{step: a, tool: {kind: postgres, auth: x, '"
    "'command: \"' + \"'{{ x \" * 100_000 + '\"}}]'",
}


@pytest.mark.parametrize("case", CASES)
def test_K2_a_hostile_file_is_refused_quickly_and_in_little_memory(case: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, CASES[case]], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert seen["problems"], case
    assert all(p["line"] >= 1 and p["column"] >= 1 for p in seen["problems"])
    assert seen["seconds"] < 4
    assert seen["megabytes"] < 150


def test_B7_a_file_of_wrong_templates_costs_no_more_than_one_of_right_ones() -> None:
    """What a wrong template costs most is its hint, and only so many are told."""
    lines = "".join(f"    - '{{{{ ctx.a{i} | nope }}}}'\n" for i in range(20_000))
    step = "- step: a\n  tool:\n    kind: noop\n    result:\n"
    text = f"metadata: {{name: p}}\nworkflow:\n{step}{lines}"
    right = text.replace("nope", "upper")
    begun = time.process_time()
    assert not load(right)[0].problems
    middle = time.process_time()
    assert load(text)[0].problems[-1].code == "A4.too-many"
    assert time.process_time() - middle < 2 * (middle - begun)
