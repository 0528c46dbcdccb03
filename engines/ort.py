#!/usr/bin/env python3
"""onnxruntime on a processor as an engine of `onnxref test`."""

import ctypes

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as errors

from protocol import Unsupported, serve

onnxruntime.set_default_logger_severity(4)
# numpy has no such types; ml_dtypes has.
NARROW = {
    number
    for name, number in TensorProto.DataType.items()
    if name == "BFLOAT16" or name.startswith(("FLOAT4", "FLOAT8", "INT2", "INT4", "UINT2", "UINT4"))
}


def run(model, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    # What can't be loaded isn't supported.
    except (errors.Fail, errors.InvalidArgument, errors.InvalidGraph, errors.NotImplemented) as error:
        raise Unsupported(error) from error
    values = [*model.graph.input, *model.graph.output]
    if not any(value.type.tensor_type.elem_type in NARROW for value in values):
        return session.run(None, inputs)
    outputs = session.run_with_ort_values(None, {name: fed(array) for name, array in inputs.items()})
    return [given(output) for output in outputs]


def fed(array):
    number = helper.np_dtype_to_tensor_dtype(array.dtype)
    if number not in NARROW:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    # The shape is that of the elements, also where a byte holds several.
    packed = np.frombuffer(numpy_helper.from_array(array).raw_data, np.uint8)
    held = np.zeros(array.shape, np.uint16 if number == TensorProto.BFLOAT16 else np.uint8)
    held.reshape(-1).view(np.uint8)[: packed.size] = packed
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(held, number)


def given(output):
    number, shape = output.element_type(), output.shape()
    if number not in NARROW:
        return output.numpy()
    empty = np.zeros(shape, helper.tensor_dtype_to_np_dtype(number))
    size = len(numpy_helper.from_array(empty).raw_data)
    data = ctypes.string_at(output.data_ptr(), size)
    return numpy_helper.to_array(TensorProto(data_type=number, dims=shape, raw_data=data))


if __name__ == "__main__":
    serve(run)
