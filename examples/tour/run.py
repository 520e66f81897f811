"""Runs the tour: starts its API on loopback, runs the playbook against it, says what to try next.

Called by `make run`. Further arguments go to `noetl run`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from api import BUSY, PAGES, serving  # noqa: E402

from noetl_cli.main import run  # noqa: E402

NEXT = """
What to try next:
  {noetl} status latest --local      the steps, the retries, the loop
  {noetl} events latest --local      every fact of the run, in order
  {noetl} logs latest --local        what its tasks printed
  {noetl} graph {file} --format svg > tour.svg
  {noetl} verify latest --local      replay the log and check it
  {noetl} run examples/approval-gate.yaml      and open its gate from another terminal
"""


def main(args: list[str]) -> int:
    file = os.path.relpath(HERE / "playbook.yaml")
    command = ["run", file, "--scratch-postgres", "shop_db", *args]
    with serving() as address:
        busy = ", ".join(map(str, BUSY))
        print(
            f"an API with {PAGES} pages on {address}; pages {busy} are busy at first",
            file=sys.stderr,
        )
        print(f"$ noetl {' '.join(command)} --set api={address}\n", file=sys.stderr)
        code = run([*command, "--set", f"api={address}"])
    if code == 0:
        program = os.path.relpath(Path(sys.executable).parent / "noetl")
        say(NEXT.format(noetl=program, file=file))
    return code


def say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
