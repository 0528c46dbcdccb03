#!/usr/bin/env python3
"""onnx's reference implementation in Python as an engine of `onnxref test`."""

import numpy as np
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import RuntimeContextError, RuntimeImplementationError

from protocol import Unsupported, serve


def run(model, inputs):
    try:
        session = ReferenceEvaluator(model)
    except (NotImplementedError, RuntimeContextError, RuntimeImplementationError) as error:
        raise Unsupported(error) from error
    outputs = session.run(None, inputs)
    return [np.asarray(value) if isinstance(value, np.generic) else value for value in outputs]


if __name__ == "__main__":
    serve(run)
