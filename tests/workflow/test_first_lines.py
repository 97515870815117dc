"""A command whose first line names an interpreter that does not run it."""

from __future__ import annotations

import pytest

from deepgrid.workflow.slurm_scripts import advice_on_command


@pytest.mark.parametrize(
    ("first", "shell", "says"),
    [
        (
            "#!/bin/bash",
            None,
            "bash, which has no effect here: /bin/sh runs it; write shell: /bin/bash",
        ),
        ("#!/usr/bin/env -S bash -e", "/bin/sh", "write shell: /bin/bash"),
        (
            "#!/usr/bin/env python3",
            "/bin/bash",
            "here: /bin/bash runs it; start python3 in the command",
        ),
        ("#!/bin/bash", "/bin/bash", ""),
        ("#!/bin/sh", None, ""),
        ("#! a comment", "ENTRYPOINT", ""),
        ("# no #!/bin/bash", None, ""),
    ],
)
def test_a_first_line_that_names_another_interpreter_is_a_warning(first: str, shell: str | None, says: str) -> None:
    found = list(advice_on_command(f"{first}\necho word", shell))
    assert bool(found) == bool(says) and all(says in one for one in found)
