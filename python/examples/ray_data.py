"""Runs a model on the rows of Parquet files by Ray Data, on one machine or all machines of a cluster.

python ray_data.py MODEL ROWS OUTPUT: ROWS is a folder of Parquet files with a column `row`, and one for each input of MODEL.
OUTPUT is written with `row`, and a column for each output. All lie under the same path on each machine.
"""

import sys

import ray.data

from onnxref.batch import Predictor


def run(model: str, rows: str, output: str, workers: int = 2, batch: int = 8192) -> None:
    # Each worker is a process that loads the model once, maps its file, and runs on one thread. One that dies is replaced,
    # and its batches are done again.
    # Small files are read as one block, which would be one worker's.
    ray.data.read_parquet(rows).repartition(target_num_rows_per_block=batch).map_batches(
        Predictor,
        fn_constructor_args=(model,),
        fn_constructor_kwargs={"keep": ["row"]},
        compute=ray.data.ActorPoolStrategy(size=workers),
        batch_size=batch,
        zero_copy_batch=True,
    ).write_parquet(output)


if __name__ == "__main__":
    run(*sys.argv[1:4])
