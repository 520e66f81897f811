"""The closed sets of words of the language (rule K3)."""

from __future__ import annotations

from enum import StrEnum


class ExecutorKind(StrEnum):
    """What runs a step's pipeline."""

    POOL = "pool"
    POD = "pod"
    JOB = "job"


class PoolScope(StrEnum):
    """Whom the worker Pods of a pool serve."""

    EXECUTION = "execution"
    PLAYBOOK = "playbook"


class RouterMode(StrEnum):
    """How many matching arcs fire."""

    EXCLUSIVE = "exclusive"
    INCLUSIVE = "inclusive"


class LoopMode(StrEnum):
    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"


class LoopExec(StrEnum):
    """Where iterations run: in the one worker that leased the step, or each on its own lease."""

    LOCAL = "local"
    DISTRIBUTED = "distributed"


class FailureMode(StrEnum):
    FAIL_FAST = "fail_fast"
    BEST_EFFORT = "best_effort"


class OnDeny(StrEnum):
    """What becomes of a token that admission refuses."""

    SKIP = "skip"
    WAIT = "wait"


class AtEnd(StrEnum):
    """What becomes of a half full join when nothing else can happen."""

    FAIL = "fail"
    FIRE = "fire"
    DROP = "drop"


class JoinMode(StrEnum):
    ALL = "all"


class Reducer(StrEnum):
    APPEND = "append"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    COUNT = "count"
    MERGE = "merge"
    LAST = "last"


class Action(StrEnum):
    """What a task policy may do."""

    CONTINUE = "continue"
    RETRY = "retry"
    JUMP = "jump"
    BREAK = "break"
    FAIL = "fail"


class Backoff(StrEnum):
    NONE = "none"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


class OnUnmatched(StrEnum):
    CONTINUE = "continue"
    FAIL = "fail"


class OnWorkerLost(StrEnum):
    REDELIVER = "redeliver"
    FAIL = "fail"


class KeychainKind(StrEnum):
    SECRET = "secret"
    POSTGRES = "postgres_credential"
    BEARER = "bearer"
    BASIC = "basic"
    API_KEY = "api_key"
    OAUTH2 = "oauth2_client_credentials"


class Numeric(StrEnum):
    """How SQL `numeric` becomes JSON."""

    NUMBER = "number"
    TEXT = "text"
