"""What the verbs of the program find, as data: the documents that they print with --json."""

from __future__ import annotations

import json
import math
import os
import re
import string
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from . import _onnxref
from ._arrays import CODES, feed
from ._errors import InputError, ModelNotFoundError, OnnxrefError, made
from ._session import InferenceSession, Model, source_of

#: Statuses of the program that are answers: success, and findings or differences.
_ANSWERS = (0, 1)


def check(model: Model, **options: Any) -> dict[str, Any]:
    """Whether a model is what the standard says: {"valid": .., "findings": [..], ..}."""
    with ExitStack() as stack:
        return _document("check", [_path(model, stack)], options)


def inspect(model: Model, **options: Any) -> dict[str, Any]:
    """What a model holds, and what was made of it: operators, shapes, constants, memory, and what can't run."""
    with ExitStack() as stack:
        return _document("inspect", [_path(model, stack)], options)


def compare(
    a: Model,
    b: Model | None = None,
    inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The first value in which two models differ, or a model with and without optimisation, and the nodes that lead to it.

    `b` may also be a folder or a .npz file of recorded values. `inputs` are tensors; other values come from files, by
    `input=["name=FILE.pb"]`. Without `inputs`, random ones are fed.
    """
    with ExitStack() as stack:
        models = [_path(model, stack) for model in (a, b) if model is not None]
        if inputs is None:
            options["random"] = True
        else:
            declared, cast = _declared(models[0]), bool(options.get("cast"))
            fed = {name: _fed(name, value, declared.get(name), cast) for name, value in inputs.items()}
            options["inputs"] = path = os.path.join(_folder(stack), "inputs.npz")
            with zipfile.ZipFile(path, "w") as archive:
                for name, (elements, code, _) in fed.items():
                    if code not in _NOT_OF_NUMPY:
                        with archive.open(_escaped(name) + ".npy", "w", force_zip64=True) as file:
                            np.lib.format.write_array(file, elements, allow_pickle=False)
            others = [f"{name}={_literal(*each)}" for name, each in fed.items() if each[1] in _NOT_OF_NUMPY]
            more = options.get("input", [])
            options["input"] = [*([more] if isinstance(more, str) else more), *others]
        return _document("compare", models, options)


def _declared(path: str) -> dict[str, str | None]:
    """The types of the inputs of a model."""
    try:
        return {name: type for name, type, _ in _onnxref.Document.open(path).inputs}
    except OnnxrefError:
        return {}


def _fed(name: str, value: Any, declared: str | None, cast: bool) -> tuple[Any, int, tuple[int, ...] | None]:
    """A tensor to feed, of the type that the model declares."""
    if value is None or not (declared or "tensor(").startswith("tensor("):
        instead = f'write it to a file, and give input=["{name}=FILE.pb"]'
        raise InputError(f'input "{name}": {value if value is None else declared} is not a tensor: {instead}')
    code = next((code for code, name in _NAMES.items() if declared == f"tensor({name})"), None)
    try:
        # The program rounds float64.
        return feed(value, None if cast and np.asarray(value).dtype == np.float64 else code)
    except (TypeError, ValueError) as error:
        raise InputError(f'input "{name}": {error}') from error


def _escaped(name: str) -> str:
    """A name as the program reads it in an archive: with `%`, which begins a byte there, as the program writes it."""
    if "%" not in name:
        return name
    made = "".join(chr(byte) if chr(byte) in _STAY else f"%{byte:02X}" for byte in name.encode())
    return f"%{ord(name[0]):02X}{made[1:]}" if name[0] in ".-" else made


_STAY = string.ascii_letters + string.digits + "._-"

#: The standard's names of element types that .npz files don't have, or not as objects.
_NOT_OF_NUMPY = {
    8: "string", 16: "bfloat16", 17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz",
    21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2", 27: "float6e2m3",
    28: "float6e3m2",
}  # fmt: skip
#: Those of all element types.
_NAMES = {**{code: str(dtype) for dtype, code in CODES.items()}, 1: "float", 11: "double", **_NOT_OF_NUMPY}


def _literal(elements: Any, code: int, shape: tuple[int, ...] | None) -> str:
    """What is fed, as JSON that the program reads."""
    dtype = _NOT_OF_NUMPY[code]
    if shape is not None:
        return json.dumps({"dtype": dtype, "shape": shape, "values": elements})
    numbers = elements.ravel().astype("float64" if "float" in dtype else "int64").tolist()
    values = [number if math.isfinite(number) else str(number).replace("nan", "NaN") for number in numbers]
    return json.dumps({"dtype": dtype, "shape": elements.shape, "values": values})


def ops(name: str | None = None, **options: Any) -> list[dict[str, Any]]:
    """The operators; or those of a name, with their versions, types and errors, and where other engines differ."""
    if not (name is None or isinstance(name, str)):
        raise TypeError(f"name={name!r}: expected a text")
    operators: list[dict[str, Any]] = _document("ops", [] if name is None else [name], options)["operators"]
    return operators


def _document(verb: str, arguments: list[str], options: Mapping[str, Any]) -> dict[str, Any]:
    for name in ("help", "version", "json"):
        if name in options:
            raise TypeError(f"{verb} has no argument {name!r}: it returns data")
    flags = [flag for name, value in options.items() for flag in _flags(name, value)]
    status, text = _onnxref.answer(["onnxref", verb, *flags, *(_safe(argument) for argument in arguments)])
    documents: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    if status not in _ANSWERS and documents and "error" in documents[-1]:
        fault = documents[-1]["error"]
        cause = fault["causes"][0] if fault["causes"] else {}
        missing = next((argument for argument in arguments if not os.path.exists(argument)), None)
        message = _in_python(fault["message"])
        raised = made({**cause, "kind": fault["kind"], "message": message}, fault, not_found=missing is not None)
        if isinstance(raised, ModelNotFoundError):
            raised.filename = missing
        raise raised
    return documents[0]


#: What flags of the program are called here.
_ARGUMENTS = [
    (r"--limit (\w+)=N", r'limit={"\1": N}'), (r"--allow ([\w-]+) accepts", r'allow="\1" accepts'),
    (r"--external-root DIR", "external_root=DIR"), (r"--timeout gives", "timeout=SECONDS gives"),
    (r"--cast rounds", "cast=True rounds"), (r"--hard-links accepts", "hard_links=True accepts"),
    (r"^--([a-z]+)(?=[ :])", r"\1"),
]  # fmt: skip


def _in_python(message: str) -> str:
    """A message of the program that says what is called a flag there as an argument. What is quoted stays."""
    pieces = re.split(r"""("(?:[^"\\]|\\.)*"|'--[^']*'|`[^`]*`)""", message)
    for flag, argument in _ARGUMENTS:
        pieces[::2] = [re.sub(flag, argument, piece) for piece in pieces[::2]]
    return "".join(pieces)


def _safe(argument: str) -> str:
    """An argument that isn't taken for a flag."""
    return os.path.join(".", argument) if argument.startswith("-") else argument


def _flags(name: str, value: Any) -> Iterable[str]:
    """An option as flags of the program: optimize=False, allow=["a", "b"], limit={"nodes": 5}, timeout=2."""
    flag = "--" + name.replace("_", "-")
    if value is True:
        return [flag]
    if value is False or value is None:
        return []
    if isinstance(value, Mapping):
        return [f"{flag}={key}={each}" for key, each in value.items()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [f"{flag}={each}" for each in value]
    return [f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}"]


def _path(model: Model, stack: ExitStack) -> str:
    """A file with the model."""
    source = model._source if isinstance(model, InferenceSession) else source_of(model)
    if isinstance(source, str):
        return source
    path = os.path.join(_folder(stack), "model.onnx")
    with open(path, "wb") as file:
        file.write(source)
    return path


def _folder(stack: ExitStack) -> str:
    return stack.enter_context(tempfile.TemporaryDirectory(prefix="onnxref"))
