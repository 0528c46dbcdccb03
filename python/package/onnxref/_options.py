"""Options of sessions: those of this package, which are checked here, and onnxruntime's."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Union

import numpy as np

from . import _onnxref
from ._errors import InputError

#: Texts or paths; one alone stands for a list of it.
Several = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]


class GraphOptimizationLevel(Enum):
    """Levels of onnxruntime, which mean nothing here: optimisation changes no bit."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Enum):
    """Modes of onnxruntime, which mean nothing here."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class _Kept:
    """Attributes that are kept, whatever their names."""

    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class SessionOptions(_Kept):
    """Options of onnxruntime. The number of threads, dimensions and some config entries mean something here; what changes
    nothing but speed and memory there is kept and ignored."""

    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    optimized_model_filepath: str = ""
    profile_file_prefix: str = "onnxruntime_profile_"
    use_deterministic_compute: bool = False

    def __init__(self) -> None:
        """The options that onnxruntime begins with."""
        self._dimensions: dict[str, int] = {}
        self._roots: list[str] = []

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Does or refuses what changes results. Other entries mean nothing here."""
        entry = f'the config entry "{key}": "{value}"'
        if key == "session.set_denormal_as_zero" and value != "0":
            why = "is not implemented: onnxref computes with subnormal numbers" if value == "1" else "is neither 0 nor 1"
            raise InputError(f"{entry} {why}")
        if key == "session.load_model_format" and value == "ORT":
            raise InputError(f"{entry} is not implemented: onnxref reads ONNX only")
        if key.startswith("onnxref."):
            raise InputError(f"{entry} sets nothing: in Python it is an argument of InferenceSession")
        if key == "session.model_external_initializers_file_folder_path":
            self._roots.append(value)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """The size of an open dimension, as `dimensions` of a session gives it."""
        self._dimensions[name] = size


class RunOptions(_Kept):
    """Options of a run in onnxruntime. Others than `terminate` mean nothing here."""

    only_execute_path_to_fetches: bool = False

    def __init__(self) -> None:
        """The options that onnxruntime begins with."""
        self._end = _onnxref.End()

    @property
    def terminate(self) -> bool:
        """Ends runs with these options, those that go on too: they raise Cancelled. It stays set."""
        return self._end.is_set()

    @terminate.setter
    def terminate(self, on: bool) -> None:
        self._end.set(bool(on))

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Means nothing here."""


def checked(options: dict[str, Any], sess_options: Any) -> dict[str, Any]:
    """The options of a session as the extension module takes them; for one that is wrong, an error that names it."""
    threads, dimensions, called = options["threads"], options["dimensions"], "threads"
    roots: list[str] = []
    if sess_options is not None:
        own = getattr(sess_options, "intra_op_num_threads", None)
        if own is None:
            raise TypeError(f"sess_options={sess_options!r}: expected SessionOptions")
        if threads is None and own:
            threads, called = own, "SessionOptions.intra_op_num_threads"
        roots = getattr(sess_options, "_roots", [])
        dimensions = {**getattr(sess_options, "_dimensions", {}), **dict(dimensions or {})}
    made = {
        "threads": None if threads is None else _integer(called, threads),
        "limits": _integers("limits", options["limits"]),
        "allow": several("allow", options["allow"]),
        "external_roots": [*several("external_roots", options["external_roots"]), *roots],
        "external_data": _contents(options["external_data"]),
        "dimensions": _integers("dimensions", dimensions),
    }
    for name in ("untrusted", "hard_links", "fast_math", "optimize", "mmap", "string_dtype"):
        if not isinstance(options[name], (bool, np.bool_)):
            raise TypeError(f"{name}={options[name]!r}: expected True or False")
        made[name] = bool(options[name])
    return {name: made[name] for name in options}


def end_of(run_options: Any) -> _onnxref.End | None:
    """What ends a run with these options."""
    return run_options._end if isinstance(run_options, RunOptions) else None


def seconds(timeout: Any) -> float | None:
    """The time of a run; None for a time that never passes."""
    if not isinstance(timeout, (int, float, np.number)):
        raise TypeError(f"timeout={timeout!r}: expected a number of seconds")
    if not timeout >= 0:
        raise InputError(f"timeout={timeout}: expected a number of seconds that is not negative")
    # What the machine counts ends in 500 billion years.
    return float(timeout) if timeout < 1 << 63 else None


def several(name: str, value: Any) -> list[str]:
    """Texts or paths, also of one alone: its letters are not meant."""
    alone = isinstance(value, (str, bytes, os.PathLike))
    try:
        return [os.fsdecode(each) for each in ([value] if alone else value)]
    except TypeError:
        raise TypeError(f"{name}={value!r}: expected a text or a path, or a list of these") from None


def _integer(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: expected an integer") from None
    if not 0 <= number < 1 << 64:
        raise InputError(f"{name}={value!r}: expected an integer from 0 to {(1 << 64) - 1}")
    return number


def _entries(name: str, values: Any) -> dict[str, Any]:
    try:
        entries = dict(values or {})
    except (TypeError, ValueError):
        raise TypeError(f"{name}={values!r}: expected a dict") from None
    for key in entries:
        if not isinstance(key, str):
            raise TypeError(f"{name}={values!r}: expected a text, not {key!r}, as the key")
    return entries


def _integers(name: str, values: Any) -> dict[str, int]:
    return {key: _integer(f'{name}["{key}"]', value) for key, value in _entries(name, values).items()}


def _contents(values: Any) -> dict[str, bytes]:
    contents = _entries("external_data", values)
    for location, content in contents.items():
        try:
            contents[location] = bytes(memoryview(content))
        except TypeError:
            kind = type(content).__name__
            raise TypeError(f'external_data["{location}"]: expected bytes, not a value of type {kind}') from None
    return contents
