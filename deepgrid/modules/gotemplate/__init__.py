"""Go's template syntax, with the functions of Go and of sprig that only compute.

Promise: text of strangers is filled in within bounds on nesting, steps and size, by code that can reach nothing but
the values that it is given. Whitespace is as in Go's text/template. A construct that is not supported is refused by
its name and line.
"""

from deepgrid.modules.gotemplate.evaluation import TemplateLimits, fill_in_go
from deepgrid.modules.gotemplate.lexer import is_go_template
from deepgrid.modules.gotemplate.lookup import Part

__all__ = ["Part", "TemplateLimits", "fill_in_go", "is_go_template"]
