"""onnxref as a backend of onnx: https://onnx.ai/onnx/api/backend.html"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from ._session import InferenceSession


class OnnxrefBackendRep(BackendRep):
    """A loaded model."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model on arrays: in the order of its inputs, by name, or a single one."""
        if isinstance(inputs, dict):
            feeds = inputs
        else:
            given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
            names = [info.name for info in self.session.get_inputs()]
            if len(given) > len(names):
                # Those with an initializer too.
                names = self.session.input_names
            if len(given) > len(names):
                raise ValueError(f"{len(given)} inputs are given, but the model has {len(names)}")
            feeds = dict(zip(names, given))
        outputs = self.session.run(None, feeds)
        named: tuple[Any, ...] = namedtupledict("Outputs", self.session.output_names)(*outputs)
        return named


class OnnxrefBackend(Backend):
    """Runs models on the processor. What can't run raises an exception of this package, never a skipped test."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """True: what can't run says so."""
        return True

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether it is the processor."""
        return bool(Device(device).type == DeviceType.CPU)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> OnnxrefBackendRep:
        """Loads a model. Of the options, those of InferenceSession count."""
        if not cls.supports_device(device):
            raise ValueError(f"there is no device {device}: only CPU")
        return OnnxrefBackendRep(InferenceSession(model))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Loads and runs a model."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Runs a node on arrays in the order of its inputs, in the version of `opset_version`, or else the newest."""
        given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        names = [name for name in node.input if name]
        if len(given) != len(names):
            raise ValueError(f"{len(given)} inputs are given, but the node has {len(names)}")
        graph = onnx.helper.make_graph(
            [node],
            "node",
            [onnx.helper.make_value_info(name, _type_of(value)) for name, value in zip(names, given)],
            [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name],
        )
        version = kwargs.get("opset_version") or onnx.defs.onnx_opset_version()
        opsets = [onnx.helper.make_opsetid("", version)]
        if node.domain:
            opsets.append(onnx.helper.make_opsetid(node.domain, kwargs.get("domain_version", 1)))
        model = onnx.helper.make_model(graph, opset_imports=opsets)
        return cls.run_model(model, list(given), device)


def _type_of(value: Any) -> onnx.TypeProto:
    """The type of a value that is fed."""
    import numpy as np

    if isinstance(value, list) and value:
        return onnx.helper.make_sequence_type_proto(_type_of(value[0]))
    array = np.asarray(value)
    if array.dtype.kind in "OSUT":
        return onnx.helper.make_tensor_type_proto(onnx.TensorProto.STRING, array.shape)
    return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


is_compatible = OnnxrefBackend.is_compatible
prepare = OnnxrefBackend.prepare
run = OnnxrefBackend.run_model
run_model = OnnxrefBackend.run_model
run_node = OnnxrefBackend.run_node
supports_device = OnnxrefBackend.supports_device
