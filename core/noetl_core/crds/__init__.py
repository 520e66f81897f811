"""The custom resource definitions, made from the model: what the API server checks and explains.

`structural` turns the model's schemas into the form that Kubernetes takes, `refusals` the words
that are not part of v10 into rules with messages, `resources` puts the two resources together.
`noetl_cli.crds` writes them to files.
"""

from noetl_core.crds.resources import execution_crd, playbook_crd

__all__ = ["execution_crd", "playbook_crd"]
