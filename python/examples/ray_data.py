"""Gathers rows of a table for the ids in Parquet files, by Ray Data on all machines of a cluster.

python ray_data.py MODEL IDS OUTPUT: MODEL has an input `ids` and an output `y`, and lies under the same path on each machine.
IDS is a folder of Parquet files with the columns `row` and `ids`. OUTPUT is written with `row` and `y`.
"""

import sys

import ray
import ray.data

from onnxref.batch import Predictor


def gather(model: str, ids: str, output: str, workers: int = 2) -> None:
    # Each worker is a process that loads the model once, maps its file, and runs on one thread. One that dies is replaced,
    # and its batches are done again.
    ray.data.read_parquet(ids).map_batches(
        Predictor,
        fn_constructor_args=(model,),
        fn_constructor_kwargs={"outputs": {"y": "y"}, "keep": ["row"]},
        compute=ray.data.ActorPoolStrategy(size=workers),
        batch_size=65_536,
        zero_copy_batch=True,
    ).write_parquet(output)


if __name__ == "__main__":
    gather(*sys.argv[1:4])
