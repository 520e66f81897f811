"""The control plane's core: pure decisions over the log of one execution.

    evolve(state, event)                              what a log adds up to
    decide(program, state, trigger, now, lookup)      what follows from a trigger
    transition(program, state, trigger, now, lookup)  the same, as one commit of a store

No clock, no chance, no I/O: the same arguments always give the same answer.
"""

from noetl_core.engine.decide import decide
from noetl_core.engine.evolve import evolve, fold
from noetl_core.engine.program import Program
from noetl_core.engine.transition import transition

__all__ = ["Program", "decide", "evolve", "fold", "transition"]
