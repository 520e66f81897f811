"""Templates: Jinja's expressions on plain data, bounded in time and memory (rules B1 to B7).

    compile_template(text).value(scope)     what a value of a playbook is
    compile_when(condition).truth(scope)    whether a `when` holds
    render(tree, scope)                     a whole tree of data

Pure: no clock, no chance, no I/O. See `template` for the flow from text to value.
"""

from noetl_core.templates.errors import TemplateError, TemplateProblem, TemplateProblems
from noetl_core.templates.limits import LIMITS, Limits
from noetl_core.templates.possible import MISSING, Known, Missing
from noetl_core.templates.template import (
    Template,
    compile_template,
    compile_when,
    problems,
    render,
)

__all__ = [
    "LIMITS",
    "MISSING",
    "Known",
    "Limits",
    "Missing",
    "Template",
    "TemplateError",
    "TemplateProblem",
    "TemplateProblems",
    "compile_template",
    "compile_when",
    "problems",
    "render",
]
