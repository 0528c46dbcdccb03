"""Runs a model on the rows of Parquet files by DataFusion, on several threads of one process.

python datafusion_udf.py MODEL ROWS OUTPUT: ROWS is a folder of Parquet files with a column `row`, and one for each input of
MODEL. OUTPUT is written with `row`, and a column for each output.
"""

import sys

import pyarrow
from datafusion import SessionConfig, SessionContext, col, udf

from onnxref.batch import Predictor


def run(model: str, rows: str, output: str, workers: int = 2, batch: int = 8192) -> None:
    # All threads share one model. Each runs its batches on itself alone, and lets Python's other threads go on meanwhile.
    predict = Predictor(model)
    names = predict.input_columns.names

    def outputs(*columns: pyarrow.Array) -> pyarrow.Array:
        return predict.arrow(pyarrow.RecordBatch.from_arrays(list(columns), names=names)).to_struct_array()

    given = udf(outputs, predict.input_columns.types, pyarrow.struct(predict.output_columns), "immutable", "model")
    context = SessionContext(SessionConfig().with_target_partitions(workers).with_batch_size(batch))
    frame = context.read_parquet(rows).select(col("row"), given(*map(col, names)).alias("given"))
    columns = [col("given")[name].alias(name) for name in predict.output_columns.names]
    frame.select(col("row"), *columns).write_parquet(output)


if __name__ == "__main__":
    run(*sys.argv[1:4])
