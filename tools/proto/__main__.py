"""Runs protoc on each .proto file of the library, and writes or compares the generated modules next to it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

REPOSITORY = Path(__file__).parents[2]
SOURCES = sorted((REPOSITORY / "deepgrid").rglob("*.proto"))


def generated_modules(source: Path) -> dict[Path, str]:
    """Return the text of each module that belongs to a .proto file."""
    with tempfile.TemporaryDirectory() as folder:
        options = [f"--proto_path={source.parent}", f"--python_out={folder}", f"--pyi_out={folder}"]
        if protoc.main(["protoc", *options, str(source)]):
            raise SystemExit(f"protoc refuses {source.relative_to(REPOSITORY)}")
        return {source.with_name(file.name): file.read_text() for file in sorted(Path(folder).iterdir())}


def main() -> None:
    check = sys.argv[1:] == ["--check"]
    for source in SOURCES:
        for file, text in generated_modules(source).items():
            if not check:
                file.write_text(text)
            elif not file.exists() or file.read_text() != text:
                raise SystemExit(f"{file.relative_to(REPOSITORY)} is out of date: run python -m tools.proto")


if __name__ == "__main__":
    main()
