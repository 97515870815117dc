"""Runs on the node, as the command of a job of `remote`: calls the pickled function, prints its result as text.

It may use only the standard library and the packages of the container. Cloudpickle comes with the job.
"""

import base64
import hashlib
import io
import json
import os
import sys
import traceback
import types
import zlib
from typing import Any

MOST_BYTES = 8 * 1024 * 1024
LINE = 1000


def load_cloudpickle() -> None:
    """Make the module that came with the job importable."""
    source = zlib.decompress(base64.b64decode(os.environ["REMOTE_CLOUDPICKLE"])).decode()
    package = types.ModuleType("cloudpickle")
    module = types.ModuleType("cloudpickle.cloudpickle")
    package.__path__ = []
    sys.modules["cloudpickle"], sys.modules["cloudpickle.cloudpickle"] = package, module
    exec(compile(source, "cloudpickle.py", "exec"), module.__dict__)  # noqa: S102 - the customer's own package
    vars(package).update({name: value for name, value in vars(module).items() if not name.startswith("__")})


def encoded(value: Any) -> tuple[str, bytes]:
    """Return the format and the bytes of a result: Arrow for tables, npz for arrays, JSON for everything else."""
    pyarrow, numpy = sys.modules.get("pyarrow"), sys.modules.get("numpy")
    if pyarrow is not None and isinstance(value, pyarrow.Table):
        sink = io.BytesIO()
        with pyarrow.ipc.new_stream(sink, value.schema) as writer:
            writer.write_table(value)
        return "arrow", sink.getvalue()
    if numpy is not None:
        arrays = {"": value} if isinstance(value, numpy.ndarray) else value
        if isinstance(arrays, dict) and arrays and all(isinstance(one, numpy.ndarray) for one in arrays.values()):
            sink = io.BytesIO()
            numpy.savez_compressed(sink, **{name or "result": array for name, array in arrays.items()})
            return "array" if isinstance(value, numpy.ndarray) else "npz", sink.getvalue()
    return "json", json.dumps(value, default=plain).encode()


def plain(value: Any) -> Any:
    """Return a number or text of NumPy as one of Python. Raises TypeError for another value."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.number, numpy.bool_, numpy.str_)):
        return value.item()
    raise TypeError(f"the result has a {type(value).__name__}, which is not a value of JSON")


def send(form: str, content: bytes) -> None:
    """Print a result with its size and hash, between lines that carry the job's token."""
    token = os.environ["REMOTE_TOKEN"]
    sys.stdout.flush()
    print(f"\ndeepgrid-result {token} {form} {len(content)} {hashlib.sha256(content).hexdigest()}")
    text = base64.b64encode(content).decode()
    for at in range(0, len(text), LINE):
        print(text[at : at + LINE])
    print(f"deepgrid-end {token}", flush=True)


def called() -> Any:
    """Return the result of the call. The function and its arguments are source text and JSON, or a pickle."""
    if "REMOTE_SOURCE" in os.environ:
        names: dict[str, Any] = {}
        exec(compile(os.environ["REMOTE_SOURCE"], "task.py", "exec"), names)  # noqa: S102 - the customer's own function
        return names[os.environ["REMOTE_FUNCTION"]](**json.loads(os.environ["REMOTE_CALL"]))
    load_cloudpickle()
    import pickle

    function, arguments = pickle.loads(zlib.decompress(base64.b64decode(os.environ["REMOTE_CALL"])))  # noqa: S301 - what the customer sent
    return function(*arguments)


def main() -> int:
    """Call the function; returns the exit status."""
    here, wanted = f"{sys.version_info[0]}.{sys.version_info[1]}", os.environ.get("REMOTE_PYTHON", "")
    try:
        if here != wanted and "REMOTE_SOURCE" not in os.environ:
            raise RuntimeError(f"this Python is {here}, the function was made by {wanted}")
        form, content = encoded(called())
        if len(content) > MOST_BYTES:
            raise ValueError(f"the result has {len(content)} bytes; at most {MOST_BYTES} fit in a log")
    except BaseException as error:
        told = {"type": type(error).__name__, "message": str(error)[:2000], "trace": traceback.format_exc()[-8000:]}
        send("error", json.dumps(told).encode())
        return 1
    send(form, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
