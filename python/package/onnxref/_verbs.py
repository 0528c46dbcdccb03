"""What the verbs of the program find, as data: the documents that they print with --json."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from . import _onnxref
from ._arrays import feed
from ._errors import ModelNotFoundError, made
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

    `b` may also be a folder or a .npz file of recorded values. Without `inputs`, random ones are fed.
    """
    with ExitStack() as stack:
        models = [_path(model, stack) for model in (a, b) if model is not None]
        if inputs is None:
            options["random"] = True
        else:
            import numpy as np

            path = os.path.join(_folder(stack), "inputs.npz")
            fed = {name: feed(np.asarray(value), None) for name, value in inputs.items()}
            np.savez(path, **{name: elements for name, (elements, code, _) in fed.items() if code not in _NOT_OF_NUMPY})
            options["inputs"] = path
            others = [f"{name}={_literal(*each)}" for name, each in fed.items() if each[1] in _NOT_OF_NUMPY]
            more = options.get("input", [])
            options["input"] = [*([more] if isinstance(more, str) else more), *others]
        return _document("compare", models, options)


#: The standard's names of element types that .npz files don't have, or not as objects.
_NOT_OF_NUMPY = {
    8: "string", 16: "bfloat16", 17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz",
    21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2", 27: "float6e2m3",
    28: "float6e3m2",
}  # fmt: skip


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
    operators: list[dict[str, Any]] = _document("ops", [] if name is None else [name], options)["operators"]
    return operators


def _document(verb: str, arguments: list[str], options: Mapping[str, Any]) -> dict[str, Any]:
    flags = [flag for name, value in options.items() for flag in _flags(name, value)]
    status, text = _onnxref.answer(["onnxref", verb, *flags, *(_safe(argument) for argument in arguments)])
    documents: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    if status not in _ANSWERS and documents and "error" in documents[-1]:
        fault = documents[-1]["error"]
        cause = fault["causes"][0] if fault["causes"] else {}
        missing = next((argument for argument in arguments if not os.path.exists(argument)), None)
        raised = made({**cause, "kind": fault["kind"], "message": fault["message"]}, fault, not_found=missing is not None)
        if isinstance(raised, ModelNotFoundError):
            raised.filename = missing
        raise raised
    return documents[0]


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
