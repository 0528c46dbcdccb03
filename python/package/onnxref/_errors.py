"""Exceptions. Each has the text that the program prints, and says what it is about as attributes."""

from __future__ import annotations

import json
import os
from errno import ENOENT
from typing import Any


class OnnxrefError(Exception):
    """The base of all exceptions of this package. What isn't known is None."""

    #: Who must act: "io", "model", "input", "unsupported", "limit", "cancelled" or "internal"; or what the program says:
    #: "usage", or "nothing" where nothing was compared.
    kind: str = "internal"
    #: The node: its name, its position in its graph, its operator with domain and version, and the calls of model
    #: functions around it.
    node: str | None = None
    node_index: int | None = None
    operator: str | None = None
    domain: str | None = None
    version: int | None = None
    function: str | None = None
    #: A value of the graph, and the formal input or output of the operator that it stands for.
    value_name: str | None = None
    parameter: str | None = None
    attribute: str | None = None
    axis: int | None = None
    #: The size of the axis, or what a limit allows.
    size: int | None = None
    #: The offending value, and its position in its tensor.
    value: int | None = None
    position: tuple[int, ...] | None = None
    #: The limit that was exceeded.
    limit: str | None = None
    #: The option of InferenceSession that would accept it, such as 'allow=["newer_operators"]'.
    remedy: str | None = None
    #: All faults that were found together, as the program prints them with --json, and their number.
    causes: list[dict[str, Any]] = []
    faults: int = 1
    #: The operators that a model needs and that can't run here.
    needs: dict[str, Any] | None = None
    #: The row of a batch, from 0: see onnxref.batch.
    row: int | None = None


class LoadError(OnnxrefError, ValueError):
    """A file can't be read, or departs from the standard."""


class ModelNotFoundError(LoadError, FileNotFoundError):
    """The file of a model, or of its external data, isn't there. `filename` is the path of the model if it is that."""

    # They hide the attributes of OSError, which would give the text another form.
    errno: int | None = ENOENT
    strerror: str | None = os.strerror(ENOENT)
    filename: Any = None


class WriteError(OnnxrefError, OSError):
    """A model can't be saved: `errno` says why, and `filename` is where to."""

    # As above.
    errno: int | None = None
    strerror: str | None = None
    filename: Any = None


class UnsupportedModelError(OnnxrefError, NotImplementedError):
    """The model needs what isn't implemented here: see `needs`."""


class InputError(OnnxrefError, ValueError):
    """A feed, an option, or a value that a run met is wrong."""


class IndexOutOfRangeError(InputError, IndexError):
    """An index is out of range: `value` at `position`, for an axis of `size` entries."""


class LimitError(OnnxrefError):
    """A limit was exceeded, or memory is exhausted."""


class Cancelled(OnnxrefError):
    """The time of a run was up, or its caller ended it."""


for _class in (
    OnnxrefError, LoadError, ModelNotFoundError, WriteError, UnsupportedModelError, InputError, IndexOutOfRangeError,
    LimitError, Cancelled,
):  # fmt: skip
    _class.__module__ = "onnxref"

_CLASSES: dict[str, type[OnnxrefError]] = {
    "io": LoadError,
    "model": LoadError,
    "unsupported": UnsupportedModelError,
    "usage": InputError,
    "input": InputError,
    "limit": LimitError,
    "cancelled": Cancelled,
}


def of(document: str) -> OnnxrefError:
    """The exception for an error of the library, which is written as JSON."""
    fields = json.loads(document)
    return made(fields["error"], fields["fault"], fields["remedy"], fields["not_found"], fields["unwritten"])


def made(
    error: dict[str, Any],
    fault: dict[str, Any],
    remedy: str | None = None,
    not_found: bool = False,
    unwritten: int | None = None,
) -> OnnxrefError:
    """The exception for an error, and all that was found with it."""
    kind = _CLASSES.get(error["kind"], OnnxrefError)
    about_an_index = all(name in error for name in ("node_index", "axis", "size", "value", "position"))
    if kind is InputError and about_an_index:
        kind = IndexOutOfRangeError
    if kind is LoadError and unwritten is not None:
        kind = WriteError
    elif kind is LoadError and not_found:
        kind = ModelNotFoundError
    raised = kind(error.pop("message"))
    if "position" in error:
        error["position"] = tuple(error["position"])
    raised.__dict__.update(error)
    raised.causes, raised.faults, raised.needs = fault["causes"], fault["faults"], fault.get("needs")
    raised.remedy = remedy
    if isinstance(raised, WriteError) and unwritten:
        raised.errno, raised.strerror = unwritten, os.strerror(unwritten)
    return raised
