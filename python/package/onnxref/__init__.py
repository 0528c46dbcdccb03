"""Runs ONNX models exactly as the standard says, or says precisely why it can't."""

from ._errors import (
    Cancelled,
    IndexOutOfRangeError,
    InputError,
    LimitError,
    LoadError,
    ModelNotFoundError,
    OnnxrefError,
    UnsupportedModelError,
    WriteError,
)
from ._onnxref import Document, DocumentNode, Node, __version__
from ._options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions
from ._session import InferenceSession, ModelMetadata, NodeArg, ReferenceEvaluator, run
from ._verbs import check, compare, inspect, ops

__all__ = [
    "Cancelled",
    "Document",
    "DocumentNode",
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IndexOutOfRangeError",
    "InferenceSession",
    "InputError",
    "LimitError",
    "LoadError",
    "ModelMetadata",
    "ModelNotFoundError",
    "Node",
    "NodeArg",
    "OnnxrefError",
    "ReferenceEvaluator",
    "RunOptions",
    "SessionOptions",
    "UnsupportedModelError",
    "WriteError",
    "__version__",
    "check",
    "compare",
    "get_available_providers",
    "get_device",
    "inspect",
    "ops",
    "run",
]


def get_available_providers() -> list[str]:
    """The processor, as onnxruntime names it."""
    return ["CPUExecutionProvider"]


def get_device() -> str:
    """The processor, as onnxruntime names it."""
    return "CPU"
