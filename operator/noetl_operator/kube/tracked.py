"""An execution whose object is known: what its status is made of, kept between two news.

Only `executions` keeps these. News (commits) and looks (the database) may overtake each other; the
higher `seq` is the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

from noetl_core.engine.state import State
from noetl_operator.kube.port import Key, Object, generation_of
from noetl_operator.kube.project import About
from noetl_operator.store.objects import Link, View


@dataclass(slots=True)
class Tracked:
    """An execution whose object is known: what its status is made of."""

    key: Key
    uid: str
    about: About
    state: State
    """The newest that is known."""
    fault: str | None = None
    """Why it cannot be brought up to date."""

    def learn(self, state: State) -> None:
        """A state from somewhere: news and looks may overtake each other."""
        if state.seq >= self.state.seq:
            self.state = _slim(state) if state.phase.is_final else state


def about_of(obj: Object, link: Link, view: View) -> About:
    """What a status says beside the state."""
    return About(
        generation=generation_of(obj),
        created_at=obj["metadata"]["creationTimestamp"],
        execution_id=view.execution_id,
        playbook=view.playbook,
        playbook_generation=link.playbook_generation,
        digest=view.digest,
        problems=view.problems,
    )


def _slim(state: State) -> State:
    """A finished state without what no status shows."""
    slim = state.copy()
    slim.ctx, slim.failures, slim.last = {}, (), None
    return slim
