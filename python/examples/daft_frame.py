"""Runs a model on the rows of Parquet files by Daft, in several processes of one machine; on a cluster, Daft runs on Ray.

python daft_frame.py MODEL ROWS OUTPUT: ROWS is a folder of Parquet files with a column `row`, and one for each input of MODEL.
OUTPUT is written with `row`, and a column for each output.
"""

import sys

import daft
import pyarrow
from daft import DataType, Series, col

from onnxref.batch import Predictor


def run(model: str, rows: str, output: str, workers: int = 2, batch: int = 8192) -> None:
    predict = Predictor(model)
    names = predict.input_columns.names
    given = DataType.from_arrow_type(pyarrow.struct(predict.output_columns))

    # An instance is sent to each worker, a process that loads the model once, maps its file, and runs on one thread.
    @daft.cls(max_concurrency=workers, use_process=True)
    class Model:
        def __init__(self, predict: Predictor) -> None:
            self.predict = predict

        @daft.method.batch(return_dtype=given, unnest=True, batch_size=batch)
        def outputs(self, *columns: Series) -> pyarrow.StructArray:
            fed = pyarrow.RecordBatch.from_arrays([column.to_arrow() for column in columns], names=names)
            return self.predict.arrow(fed).to_struct_array()

    frame = daft.read_parquet(f"{rows}/*.parquet")
    frame.select(col("row"), Model(predict).outputs(*map(col, names))).write_parquet(output)


if __name__ == "__main__":
    run(*sys.argv[1:4])
