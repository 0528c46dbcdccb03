#!/usr/bin/env python3
"""onnxruntime on a processor as an engine of `onnxref test`."""

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as errors

from protocol import Unsupported, serve

onnxruntime.set_default_logger_severity(4)


def run(model, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    # What can't be loaded isn't supported.
    except (errors.Fail, errors.InvalidArgument, errors.InvalidGraph, errors.NotImplemented) as error:
        raise Unsupported(error) from error
    return session.run(None, inputs)


if __name__ == "__main__":
    serve(run)
