"""`secrets`: reads a keychain entry again for the rest of the step-run (rules I6, K39)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from noetl_core.outcomes import ErrorKind, Outcome
from noetl_core.values import Value
from noetl_worker.keychain import KeychainError
from noetl_worker.tools.base import ToolContext, failed


class SecretsArgs(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    auth: str


class SecretsTool:
    """Says which fields an entry has, never what they hold."""

    kind: ClassVar[str] = "secrets"
    Args: ClassVar[type[BaseModel]] = SecretsArgs

    async def run(self, args: SecretsArgs, ctx: ToolContext) -> Outcome:
        try:
            credential = await ctx.keychain.refresh(args.auth)
        except KeychainError as error:
            return failed(ErrorKind.AUTH, str(error), code="KEYCHAIN", source=self.kind)
        if credential is None:
            message = f"the keychain has no entry `{args.auth}`"
            return failed(ErrorKind.NOT_FOUND, message, code="KEYCHAIN", source=self.kind)
        fields: list[Value] = [*sorted(credential.fields)]
        return Outcome(
            result={"name": credential.name, "kind": credential.kind.value, "fields": fields}
        )
