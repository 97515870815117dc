"""Two hundred texts that try to become code, to deceive a reader, or to break a page."""

from __future__ import annotations

from itertools import product

HIT = "window.hit=1"
ELEMENTS = (
    "img src=x", "svg", "body", "input autofocus", "details open", "video src=x", "audio src=x", "object data=x",
    "iframe src=x", "marquee", "select autofocus", "math", "embed src=x", "link rel=stylesheet href=x", "style",
)  # fmt: skip
EVENTS = ("onerror", "onload", "onfocus", "ontoggle")
CLOSERS = (
    "",
    "'>",
    '">',
    "-->",
    "]]>",
    "</code>",
    "</td>",
    "</textarea>",
    "</title>",
    "</style>",
    "</script>",
    "*/",
    "`}",
)
INSERTED = ("<script>{}</script>", "<img src=x onerror={}>", "<iframe srcdoc='<script>parent.{}</script>'>")
ADDRESSES = (
    "javascript:{}", "JaVaScRiPt:{}", "java\tscript:{}", "java\nscript:{}", "\x01javascript:{}", "vbscript:{}",
    "data:text/html,<script>parent.{}</script>", "//example.invalid/?{}", "https://example.invalid/?{}", "blob:{}",
    "<a href=javascript:{}>x</a>", "<form action=javascript:{}><button>", "<base href=javascript:{}//>",
)  # fmt: skip
TEMPLATES = (
    "{{{{constructor.constructor('{}')()}}}}", "{{@html '<img src=x onerror={}>'}}", "${{{}}}", "<%= {} %>", "#{{{}}}",
    "{{#if true}}{}{{/if}}", "[[{}]]", "@click={}", "on:click={}", "`;{};`",
)  # fmt: skip
CODED = (
    "&lt;img src=x onerror=window.hit=1&gt;", "%3Cscript%3Ewindow.hit=1%3C/script%3E", "\\u003cscript\\u003e",
    "&#x202e;", "&amp;lt;b&amp;gt;", "\uff1cscript\uff1e", "+ADw-script+AD4-", "<scr<script>ipt>window.hit=1</script>",
)  # fmt: skip
SEQUENCES = (
    "\x1b[2J\x1b[H", "\x1b]0;owned\x07", "\x1b]8;;http://example.invalid\x07link\x1b]8;;\x07", "\x1b]52;c;ZXZpbA==\x07",
    "\x1b[31mred\x1b[0m", "\x1b[38;5;1mred", "\x1bP$qm\x1b\\", "\x9b2J", "\x1b[6n", "\x1b(0", "\r\rover", "a\bb",
)  # fmt: skip
DIRECTIONS = (
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b\u200c\u200d\u2060\ufeff\u00ad"
)
PROPERTIES = ("__proto__", "constructor", "toString", "hasOwnProperty", "null", "undefined", "NaN", "-0", "1e309", "[]")
LONG = (
    "A" * 220,
    "e\u0301" * 60,
    "\U0001f469\u200d\U0001f680" * 12,
    "Z\u0351\u0327\u0301" * 20,
    "x\u00a0" * 40,
    "wide x" * 40,
)
ALIKE = ("аlpha", "ａlpha", "alpha\u200b", "alphа", "ALPHA", "alp\u00adha")


def hostile_texts() -> list[str]:
    """Return the texts, without repetitions, each of at most 256 bytes."""
    made = [f"<{element} {event}={HIT}>" for element, event in product(ELEMENTS, EVENTS)]
    made += [closer + inserted.format(HIT) for closer, inserted in product(CLOSERS, INSERTED)]
    made += [form.format(HIT) for form in (*ADDRESSES, *TEMPLATES)]
    made += [*CODED, *SEQUENCES, *PROPERTIES, *LONG, *ALIKE]
    made += [f"a{mark}b{mark}c" for mark in DIRECTIONS]
    made += [f"x{chr(code)}y" for code in (*range(1, 32), *range(0x7F, 0xA0, 4)) if chr(code) not in "\t\n\r"]
    return list(dict.fromkeys(text for text in made if len(text.encode()) <= 256))
