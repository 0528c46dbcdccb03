#!/usr/bin/env python3
"""Trains small models with scikit-learn and LightGBM, exports them, and packs them with inputs and onnxruntime's outputs.

    pip install scikit-learn skl2onnx lightgbm onnxmltools onnx onnxruntime
    python tools/export_learned_models.py onnx-test-data/learned-models.tar.xz

Each case is in the layout of ONNX's own: learned-models/NAME/model.onnx and test_data_set_0/{input,output}_I.pb. Outputs of
classifiers that are sequences of maps (ZipMap) are left out of the export, but for one, which keeps them. Data is drawn from
a fixed seed.
"""
import io
import sys
import tarfile

import lightgbm
import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnxmltools import convert_lightgbm
from onnxmltools.convert.common.data_types import FloatTensorType as LightGbmFloats
from skl2onnx import to_onnx
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

random = np.random.default_rng(20260101)
x = random.standard_normal((200, 6)).astype(np.float32)
classes = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(np.int64) + (x[:, 3] > 0.5)
numbers = (np.sin(x[:, 0]) + x[:, 1] * x[:, 4]).astype(np.float32)
labels = random.choice(["red", "green", "blue", "no colour"], (200, 2))


def scikit(model, data, target, **options):
    return to_onnx(model.fit(data, target), data[:1], target_opset={"": 18, "ai.onnx.ml": 3}, **options)


def light(model, target):
    return convert_lightgbm(
        model.fit(x, target), initial_types=[("x", LightGbmFloats([None, x.shape[1]]))], zipmap=False, target_opset=15
    )


small = {"n_estimators": 12, "max_depth": 4, "random_state": 0}
quiet = {"verbose": -1, "n_estimators": 12, "num_leaves": 8, "min_child_samples": 5}
no_map = {"zipmap": False}
forest = RandomForestClassifier(**small)
support = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0))
colours = make_pipeline(OneHotEncoder(), LogisticRegression())
MODELS = {
    "random_forest": (scikit(forest, x, classes, options={id(forest): no_map}), x[:50]),
    "random_forest_zip_map": (scikit(RandomForestClassifier(**small), x, classes), x[:5]),
    "gradient_boosting": (scikit(GradientBoostingRegressor(**small), x, numbers), x[:50]),
    "scaler_support_vectors": (scikit(support, x, classes, options={id(support): no_map}), x[:50]),
    "colours_logistic": (scikit(colours, labels, classes, options={id(colours): no_map}), labels[:20]),
    "lightgbm_classifier": (light(lightgbm.LGBMClassifier(**quiet), classes), x[:50]),
    "lightgbm_regressor": (light(lightgbm.LGBMRegressor(**quiet), numbers), x[:50]),
}


def message(name, value):
    """A value as its message; a list of maps is a sequence of maps from int64 to float."""
    if not isinstance(value, list):
        return numpy_helper.from_array(np.asarray(value), name)
    maps = [numpy_helper.from_dict({k: np.float32(v) for k, v in sorted(entry.items())}) for entry in value]
    return onnx.helper.make_sequence(name, onnx.SequenceProto.MAP, maps)


with tarfile.open(sys.argv[1], "w:xz", preset=9) as archive:

    def write(path, data):
        entry = tarfile.TarInfo(f"learned-models/{path}")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))

    for name, (model, data) in MODELS.items():
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        write(f"{name}/model.onnx", model.SerializeToString())
        [fed] = session.get_inputs()
        given = data.astype(object) if data.dtype.kind == "U" else data
        write(f"{name}/test_data_set_0/input_0.pb", numpy_helper.from_array(given, fed.name).SerializeToString())
        for k, (output, value) in enumerate(zip(session.get_outputs(), session.run(None, {fed.name: given}))):
            write(f"{name}/test_data_set_0/output_{k}.pb", message(output.name, value).SerializeToString())
        print(name, [node.op_type for node in model.graph.node])
