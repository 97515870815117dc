"""Parses a template into nodes. Refuses every construct that Go does not have, and unknown functions, by their line."""

from __future__ import annotations

import difflib
import re

from deepgrid.modules.gotemplate import syntax
from deepgrid.modules.gotemplate.functions import FUNCTIONS
from deepgrid.modules.gotemplate.functions.arguments import in_range
from deepgrid.modules.gotemplate.lexer import Action, Lexer, Text, Token, unquote
from deepgrid.modules.gotemplate.lookup import Unfit
from deepgrid.modules.template import TemplateFault

MOST_NESTED = 32  # of if, range and parentheses
MOST_VARIABLES = 500  # known at one place
MOST_TEMPLATES = 100
_CONSTANTS = {"true": True, "false": False, "nil": None}
_CONTROLS: dict[str, type[syntax.If | syntax.Range | syntax.With]] = {
    "if": syntax.If,
    "range": syntax.Range,
    "with": syntax.With,
}


def parse(text: str) -> syntax.Template:
    """Return a parsed template. Raises TemplateFault."""
    return _Parser(text).template()


class _Parser:
    def __init__(self, text: str) -> None:
        self._parts = Lexer(text).parts()
        self._variables = ["$"]
        self._named: dict[str, tuple[syntax.Node, ...]] = {}
        self._depth = self._loops = 0

    def template(self) -> syntax.Template:
        body, end = self._body()
        if end is not None:
            raise TemplateFault(f"template: {{{{{end.tokens[0].text}}}}} without if, range or with", end.line)
        return syntax.Template(body, self._named)

    def _body(self) -> tuple[tuple[syntax.Node, ...], Action | None]:
        """Return nodes up to the next `else` or `end`, which is returned too, or up to the end of the template."""
        nodes: list[syntax.Node] = []
        for part in self._parts:
            if isinstance(part, Text):
                nodes.append(part)
                continue
            word = part.tokens[0].text if part.tokens and part.tokens[0].kind == "word" else ""
            if word in ("else", "end"):
                return tuple(nodes), part
            node = self._node(part, word)
            nodes += [] if node is None else [node]
        return tuple(nodes), None

    def _node(self, action: Action, word: str) -> syntax.Node | None:
        """Return the node that begins with this action; None for a definition."""
        if word in _CONTROLS:
            return self._control(action, word, 1)
        if word in ("break", "continue"):
            if self._loops == 0 or len(action.tokens) > 1:
                raise TemplateFault(f"template: {{{{{word}}}}} stands alone, and inside of range", action.line)
            return syntax.Leave(is_break=word == "break")
        if word in ("define", "template", "block"):
            return self._named_template(action, word)
        return syntax.Output(self._whole_pipe(_Tokens(action, 0), most_variables=1))

    def _named_template(self, action: Action, word: str) -> syntax.Call | None:
        tokens = _Tokens(action, 1)
        token = tokens.peek()
        if token is None or token.kind != "string":
            raise tokens.unexpected(f"{{{{{word}}}}} needs a name in quotes")
        name = unquote(tokens.take())
        needs_value = word == "block" or (word == "template" and tokens.peek() is not None)
        pipe = self._whole_pipe(tokens, most_variables=0) if needs_value else None
        if tokens.peek() is not None:
            raise tokens.unexpected()
        if word != "template":
            self._define(name, action, word)
        return None if word == "define" else syntax.Call(name, pipe, action.line)

    def _define(self, name: str, action: Action, word: str) -> None:
        """Read the body of a named template, which sees no variable from outside."""
        self._enter(action.line)
        outside, self._variables = self._variables, ["$"]
        loops, self._loops = self._loops, 0
        body, stop = self._body()
        self._must_end(stop, word, action.line)
        self._named[name] = body
        if len(self._named) > MOST_TEMPLATES:
            raise TemplateFault(f"template: defines more than {MOST_TEMPLATES} templates", action.line)
        self._variables, self._loops = outside, loops
        self._depth -= 1

    def _control(self, action: Action, word: str, skip: int) -> syntax.If | syntax.Range | syntax.With:
        """Return an `if`, `range` or `with` up to its `end`. The first `skip` tokens name it."""
        self._enter(action.line)
        known = len(self._variables)
        pipe = self._whole_pipe(_Tokens(action, skip), most_variables=2 if word == "range" else 1)
        self._loops += word == "range"
        body, stop = self._body()
        self._loops -= word == "range"
        otherwise: tuple[syntax.Node, ...] = ()
        if stop is not None and stop.tokens[0].text == "else":
            nested = stop.tokens[1].text if len(stop.tokens) > 1 else ""
            if nested == word and word != "range":
                otherwise, stop = (self._control(stop, word, 2),), None
            else:
                _only(stop)
                otherwise, stop = self._body()
                self._must_end(stop, word, action.line)
        else:
            self._must_end(stop, word, action.line)
        del self._variables[known:]
        self._depth -= 1
        return _CONTROLS[word](pipe, body, otherwise)

    def _must_end(self, stop: Action | None, word: str, line: int) -> None:
        if stop is None:
            raise TemplateFault(f"template: {{{{{word}}}}} has no {{{{end}}}}", line)
        if stop.tokens[0].text != "end":
            raise TemplateFault(f"template: a second {{{{else}}}} of one {{{{{word}}}}}", stop.line)
        _only(stop)

    def _enter(self, line: int) -> None:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise TemplateFault(f"template: nested deeper than {MOST_NESTED} levels", line)

    def _whole_pipe(self, tokens: _Tokens, most_variables: int) -> syntax.Pipe:
        names, declares = self._assigned(tokens, most_variables)
        pipe = self._pipe(tokens)
        if tokens.peek() is not None:
            raise tokens.unexpected()
        if declares:  # only now, as the value cannot use the new variable
            self._variables += names
        if len(self._variables) > MOST_VARIABLES:
            raise TemplateFault(f"template: has more than {MOST_VARIABLES} variables", pipe.line)
        return syntax.Pipe(pipe.commands, pipe.line, tuple(names), declares)

    def _assigned(self, tokens: _Tokens, most: int) -> tuple[list[str], bool]:
        """Return the variables that a pipe sets, and whether it declares them."""
        kinds = [token.kind for token in tokens.rest()[:4]]
        if most == 0 or kinds[:1] != ["variable"] or kinds[1:2] not in ([","], [":="], ["="]):
            return [], True
        names = [tokens.take().text]
        if kinds[1] == ",":
            tokens.take()
            if most < 2 or kinds[2:3] != ["variable"] or kinds[3:4] not in ([":="], ["="]):
                raise tokens.unexpected("two variables are set by range only, as in range $i, $e := .Step.Use.Steps")
            names.append(tokens.take().text)
        declares = tokens.take().kind == ":="
        for name in names:
            if name == "$" or (not declares and name not in self._variables):
                raise tokens.unexpected(f"the variable {name} cannot be set here")
        return names, declares

    def _pipe(self, tokens: _Tokens) -> syntax.Pipe:
        commands = [self._command(tokens, is_first=True)]
        while (token := tokens.peek()) is not None and token.kind == "|":
            tokens.take()
            commands.append(self._command(tokens, is_first=False))
        return syntax.Pipe(tuple(commands), commands[0].line)

    def _command(self, tokens: _Tokens, *, is_first: bool) -> syntax.Command:
        line, operands = tokens.line, [self._operand(tokens)]
        while (token := tokens.peek()) is not None and token.kind not in ("|", ")"):
            if not token.spaced:
                raise tokens.unexpected()
            operands.append(self._operand(tokens))
        takes_arguments = isinstance(operands[0], syntax.Function)
        if not takes_arguments and (len(operands) > 1 or not is_first):
            raise TemplateFault("template: only functions take arguments, including those from a pipe", line)
        return syntax.Command(tuple(operands), line)

    def _operand(self, tokens: _Tokens) -> syntax.Operand:
        first = self._term(tokens)
        names: list[str] = []
        while (token := tokens.peek()) is not None and token.kind == "field" and not token.spaced:
            names.append(tokens.take().text[1:])
        if isinstance(first, syntax.Fields):
            return syntax.Fields(first.of, (*first.names, *names))
        if names and isinstance(first, syntax.Literal | syntax.Function):
            raise tokens.unexpected(f"a constant or function has no field .{names[0]}")
        return syntax.Fields(first, tuple(names)) if names else first

    def _term(self, tokens: _Tokens) -> syntax.Operand:
        token = tokens.peek()
        if token is None:
            raise tokens.unexpected("a value is missing")
        tokens.take()
        if token.kind == "string":
            return syntax.Literal(unquote(token))
        if token.kind == "number":
            return syntax.Literal(_number(token))
        if token.kind == "character":
            return syntax.Literal(_character(token))
        if token.kind == "dot":
            return syntax.Dot()
        if token.kind == "field":
            return syntax.Fields(syntax.Dot(), (token.text[1:],))
        if token.kind == "variable":
            if token.text not in self._variables:
                raise TemplateFault(f"template: the variable {token.text} is not defined", token.line)
            return syntax.Variable(token.text)
        if token.kind == "(":
            return self._in_parentheses(tokens, token)
        if token.kind != "word":
            raise TemplateFault(f"template: {token.text!r} is not expected here", token.line)
        return _word(token)

    def _in_parentheses(self, tokens: _Tokens, opening: Token) -> syntax.Pipe:
        self._enter(opening.line)
        pipe = self._pipe(tokens)
        if tokens.peek() is None:
            raise TemplateFault("template: a parenthesis is not closed", opening.line)
        tokens.take()
        self._depth -= 1
        return pipe


class _Tokens:
    """The tokens of one action, from a position on."""

    def __init__(self, action: Action, at: int) -> None:
        self._action, self._at = action, at

    @property
    def line(self) -> int:
        token = self.peek()
        return token.line if token else self._action.line

    def rest(self) -> tuple[Token, ...]:
        return self._action.tokens[self._at :]

    def peek(self) -> Token | None:
        return self._action.tokens[self._at] if self._at < len(self._action.tokens) else None

    def take(self) -> Token:
        self._at += 1
        return self._action.tokens[self._at - 1]

    def unexpected(self, what: str = "") -> TemplateFault:
        token = self.peek()
        shown = repr(token.text[:40]) if token else "the end of the action"
        return TemplateFault(f"template: {what or f'{shown} is not expected here'}", self.line)


def _only(action: Action) -> None:
    """Refuse anything after `else` or `end`."""
    if len(action.tokens) > 1:
        word, more = action.tokens[0].text, action.tokens[1].text[:40]
        raise TemplateFault(f"template: {{{{{word} {more}}}}} is not supported in modules", action.line)


def _number(token: Token) -> int | float:
    """Return a constant: decimal, hexadecimal, octal or binary, or with a fraction or exponent."""
    digits = token.text.replace("_", "")
    if len(digits) > 40:
        raise TemplateFault("template: the number has too many digits", token.line)
    if re.fullmatch(r"[+-]?0[0-7]+", digits):
        digits = digits.replace("0", "0o", 1)
    try:
        is_fraction = "x" not in digits.lower() and re.search("[.eE]", digits)
        return float(digits) if is_fraction else in_range(int(digits, 0))
    except (ValueError, Unfit):
        raise TemplateFault(f"template: {token.text} is no number of Go of at most 64 bits", token.line) from None


def _character(token: Token) -> int:
    found = unquote(token)
    if len(found) != 1:
        raise TemplateFault(f"template: {token.text} is not one character", token.line)
    return ord(found)


def _word(token: Token) -> syntax.Operand:
    if token.text in _CONSTANTS:
        return syntax.Literal(_CONSTANTS[token.text])
    if token.text not in FUNCTIONS:
        near = difflib.get_close_matches(token.text[:40], FUNCTIONS, n=1)
        hint = f"did you mean {near[0]}?" if near else "docs/reference/modules.md lists the functions"
        raise TemplateFault(f"template: {token.text[:40]} is not supported; {hint}", token.line)
    return syntax.Function(token.text)
