"""Texts that try to control a terminal or a page."""

from __future__ import annotations

ESC = "\x1b"
PAYLOADS = {
    "title": f"{ESC}]0;owned\x07", "clear": f"{ESC}[2J{ESC}[H", "clipboard": f"{ESC}]52;c;ZXZpbA==\x07",
    "device": f"{ESC}P$qm{ESC}\\", "report": f"{ESC}[6n{ESC}[c", "c1": "\x9b2J\x9d0;x\x9c", "charset": f"{ESC}(0{ESC}c",
    "direction": "\u202egnp.exe\u202c\u2066x\u2069", "lines": "a\r\nb\u2028c\x0b\x0c", "bell": "\x07\x08\x7f",
    "markup": "[bold red]x[/] [link=http://e.example]y[/link] [@click=app.bell]z[/]", "odd markup": "[/] [[ $x \\[",
    "link": f"{ESC}]8;;http://e.example{ESC}\\x{ESC}]8;;{ESC}\\", "html": "<script>alert(1)</script>",
}  # fmt: skip
