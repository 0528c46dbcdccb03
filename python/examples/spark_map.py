"""Runs a model on the rows of Parquet files by Spark, on one machine or all machines of a cluster.

spark-submit spark_map.py MODEL ROWS OUTPUT: ROWS is a folder of Parquet files with a column `row`, and one for each input of
MODEL. OUTPUT is written with `row`, and a column for each output. All lie under the same path on each machine.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from onnxref.batch import Predictor


def run(model: str, rows: str, output: str, workers: int = 2, batch: int = 8192) -> None:
    # On this machine: as many workers, and a task that fails is done again, as on a cluster. There, leave `master` out.
    spark = SparkSession.builder.master(f"local[{workers},4]").getOrCreate()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(batch))
    frame = spark.read.parquet(rows)
    # A worker is a process that loads the model once, maps its file, and runs on one thread.
    predict = Predictor(model, keep=["row"])
    schema = StructType([frame.schema["row"], *from_arrow_schema(predict.output_columns)])
    frame.mapInArrow(predict.map_in_arrow, schema).write.parquet(output)


if __name__ == "__main__":
    run(*sys.argv[1:4])
