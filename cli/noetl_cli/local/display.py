"""Progress on stderr: lines that change in place on a terminal, one line per transition elsewhere.

Names come from files and are hostile: everything is made printable before it is shown.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable
from typing import IO

from noetl_cli import output
from noetl_cli.local.progress import LoopProgress, Progress, StepProgress
from noetl_cli.terminal import Style, printable, style_for, width
from noetl_core.engine.events import ChildRequested, Event

REDRAW_S = 0.08
"""How often the lines on a terminal are drawn anew at most."""
_LOOK = {
    "waiting": ("⏸", "=", "yellow"),
    "queued": ("·", ".", "dim"),
    "running": ("▸", ">", "cyan"),
    "retrying": ("↻", "~", "yellow"),
    "done": ("✓", "+", "green"),
    "failed": ("✗", "x", "red"),
    "skipped": ("∘", "-", "dim"),
    "cancelled": ("■", "#", "yellow"),
}
_BAR = 20


def seconds_text(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


class Lines:
    """Steps as lines of text."""

    def __init__(self, stream: IO[str]) -> None:
        self.style: Style = style_for(stream)
        encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
        self._fancy = encoding.startswith("utf")

    def glyph(self, state: str) -> str:
        fancy, plain, colour = _LOOK[state]
        return self.style(fancy if self._fancy else plain, colour)

    def step(self, line: StepProgress, name_width: int, now: str) -> str:
        """State, name, attempts, loop, time and what there is to say."""
        name = printable(line.step)
        name += " " * max(0, name_width - width(name))
        colour = _LOOK[line.state][2]
        parts = [self.glyph(line.state), name, self.style(f"{line.state:9}", colour)]
        parts += self._details(line)
        took = seconds_text(line.seconds(now))
        if took:
            parts.append(self.style(took, "dim"))
        if line.note and line.state not in ("done", "running"):
            parts.append(self.style(f"— {printable(line.note)}", "dim"))
        return " ".join(parts)

    def _details(self, line: StepProgress) -> Iterable[str]:
        if line.loop is not None:
            yield self._bar(line.loop)
        if line.runs > 1:
            yield f"×{line.runs}" if self._fancy else f"x{line.runs}"
        if line.attempt > 1:
            yield self.style(f"attempt {line.attempt}", "yellow")

    def _bar(self, loop: LoopProgress) -> str:
        ended = loop.done + loop.failed
        failed = self.style(f" ({loop.failed} failed)", "red") if loop.failed else ""
        if loop.total is None:
            return f"{ended} iterations{failed}"
        filled = _BAR if not loop.total else min(_BAR, _BAR * ended // loop.total)
        full, empty = ("█", "░") if self._fancy else ("#", ".")
        return f"{full * filled}{empty * (_BAR - filled)} {ended}/{loop.total}{failed}"


class Display:
    """Shows nothing; what `--quiet` gets."""

    def recall(self, event: Event) -> None: ...
    def take(self, event: Event, root: bool) -> None: ...
    def say(self, text: str) -> None: ...
    def tick(self, now: str) -> None: ...
    def end(self, now: str) -> None: ...


class PlainDisplay(Display):
    """A line per transition, for pipes and logs."""

    def __init__(self) -> None:
        self._progress = Progress()
        self._lines = Lines(sys.stderr)

    def recall(self, event: Event) -> None:
        """What happened before this process took over."""
        self._progress.take(event)

    def take(self, event: Event, root: bool) -> None:
        if not root:
            return
        said = self._progress.take(event)
        at = event.timestamp[11:19]
        if isinstance(event.fact, ChildRequested):
            child = printable(event.fact.playbook)
            output.write(sys.stderr, f"{at} {self._lines.glyph('queued')} child {child}\n")
        if said is not None:
            output.write(sys.stderr, f"{at} {self._lines.step(said, 0, event.timestamp)}\n")

    def say(self, text: str) -> None:
        output.write(sys.stderr, text + "\n")


class LiveDisplay(Display):
    """One line a step, changed in place."""

    def __init__(self) -> None:
        self._progress = Progress()
        self._children: dict[str, Progress] = {}
        self._lines = Lines(sys.stderr)
        self._drawn = 0
        self._last_draw = 0.0
        self._dirty = True

    def recall(self, event: Event) -> None:
        """What happened before this process took over."""
        self._progress.take(event)

    def take(self, event: Event, root: bool) -> None:
        self._dirty = True
        if root:
            self._progress.take(event)
        else:
            self._children.setdefault(event.execution_id, Progress()).take(event)

    def say(self, text: str) -> None:
        """A lasting line above the changing ones."""
        self._erase()
        output.write(sys.stderr, text + "\n")
        self._dirty = True

    def tick(self, now: str) -> None:
        """Draw anew where something changed or time is shown passing."""
        if time.monotonic() - self._last_draw < REDRAW_S:
            return
        if self._dirty or any(line.active for line in self._progress.steps.values()):
            self._draw(now)

    def end(self, now: str) -> None:
        self._draw(now, whole=True)
        self._drawn = 0

    def _erase(self) -> None:
        if self._drawn:
            output.write(sys.stderr, f"\x1b[{self._drawn}F\x1b[J")
            self._drawn = 0

    def _draw(self, now: str, whole: bool = False) -> None:
        size = shutil.get_terminal_size((100, 24))
        lines = self._texts(now)
        room = max(3, size.lines - 2)
        if not whole and len(lines) > room:
            hidden = len(lines) - room + 1
            lines = [self._lines.style(f"  … {hidden} more above", "dim"), *lines[hidden:]]
        self._erase()
        cut = lines if whole else [clipped(line, size.columns - 1) for line in lines]
        output.write(sys.stderr, "".join(line + "\n" for line in cut))
        self._drawn = len(cut)
        self._last_draw, self._dirty = time.monotonic(), False

    def _texts(self, now: str) -> list[str]:
        steps = list(self._progress.steps.values())
        widest = max((width(printable(line.step)) for line in steps), default=0)
        shown = [self._lines.step(line, min(widest, 40), now) for line in steps]
        active = [
            progress
            for progress in self._children.values()
            if any(line.active for line in progress.steps.values())
        ]
        if self._children:
            shown.append(f"  children: {len(self._children)}, {len(active)} running")
        return shown


def clipped(text: str, columns: int) -> str:
    """A painted line cut to a number of cells, so that it never wraps."""
    kept: list[str] = []
    room, at = columns, 0
    while at < len(text):
        if text[at] == "\x1b":
            end = text.index("m", at) + 1
            kept.append(text[at:end])
            at = end
            continue
        cells = width(text[at])
        if cells > room:
            return "".join(kept) + ("\x1b[0m" if "\x1b" in text else "")
        kept.append(text[at])
        room -= cells
        at += 1
    return text


def display_for(quiet: bool) -> Display:
    """What fits to where stderr goes."""
    if quiet:
        return Display()
    try:
        is_terminal = sys.stderr.isatty()
    except ValueError:
        is_terminal = False
    import os

    return LiveDisplay() if is_terminal and os.environ.get("TERM") != "dumb" else PlainDisplay()
