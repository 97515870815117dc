"""Hostile GraphQL requests. Each is refused with status 422 and a sentence."""

from __future__ import annotations

from typing import Any

from tests.compat.graphql.support import SUBMIT, job_with

DEEP: Any = {"run": {"command": "x"}}
for _ in range(1000):
    DEEP = {"steps": [DEEP]}
LONG = "query { " + " ".join(f"a{n}: __typename" for n in range(10_000)) + " }"
FRAGMENTS = [f"fragment F{n} on Query {{ ...F{n + 1} ...F{n + 1} }} " for n in range(100)]
NESTED_TYPES = "{ __schema { types { inputFields { type { inputFields { type { inputFields { name } } } } } } } }"
TWO = "mutation($job: Job!) { a: submit(job: $job) b: submit(job: $job) }"
HOSTILE: dict[str, Any] = {
    "nested": {"query": "{a" * 1000 + "}" * 1000},
    "nested less": {"query": "{a" * 100 + "}" * 100},
    "nested literal": {"query": "mutation { submit(job: " + "[" * 1000 + "]" * 1000 + ") }"},
    "nested type": {"query": "query($a: " + "[" * 1000 + "Int" + "]" * 1000 + ") { job(batchLocationHash: $a) }"},
    "aliases": {"query": LONG},
    "aliases in fewer bytes": {"query": "{" + " ".join(f"a{n}:__typename" for n in range(600)) + "}"},
    "repeated": {"query": "{" + "__typename " * 1999 + "}"},
    "comments": {"query": "{__typename}" + "#\n" * 100_000},
    "long string": {"query": '{job(batchLocationHash:"' + "a" * 100_000 + '")}'},
    "circle": {"query": "fragment A on Query { ...A } { ...A }"},
    "nested types": {"query": NESTED_TYPES},
    "directives": {"query": "{ __typename " + "@skip(if: false) " * 400 + "}"},
    "two submissions": {"query": TWO, "variables": {"job": job_with()}},
    "subscription": {"query": "subscription { x }"},
    "unknown operation": {"query": SUBMIT, "operationName": "None", "variables": {"job": job_with()}},
    "no operation": {"query": "fragment A on Query { __typename }"},
    "empty": {"query": ""},
    "no query": {},
    "query is a number": {"query": 7},
    "variables are a list": {"query": SUBMIT, "variables": [1]},
    "variables are nested": {"query": SUBMIT, "variables": {"job": job_with(steps=[DEEP])}},
    "many values": {"query": SUBMIT, "variables": {"job": job_with(env=[1] * 100_000)}},
    "many objects": {"query": SUBMIT, "variables": {"job": job_with(steps=[{}] * 50_000)}},
    "number of many digits": b'{"query": "{__typename}", "variables": {"a": ' + b"9" * 100_000 + b"}}",
    "batch": [{"query": "{__typename}"}] * 1000,
    "null": None,
    "text": "query",
    "nothing": b"",
    "not JSON": b"{query:",
    "not UTF-8": b'{"query": "\xff"}',
    "not a number": b'{"query": "{__typename}", "variables": {"a": NaN}}',
    "lone surrogate": b'{"query": "{\\ud800}"}',
    "nested JSON": b"[" * 100_000,
    "nested objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
}
