#!/usr/bin/env python3
"""Exports small decoders whose numbers of tokens are open, so that one model runs the full pass and each step after it.

    pip install torch transformers onnx onnxscript onnxruntime
    python tools/export_decoders.py onnx-test-data/decoders.tar.xz

GPT-2 (by torch's newer exporter) and Llama (by the older one), of random weights from a fixed seed. Each case has two data
sets, the outputs onnxruntime's: a full pass of twelve tokens without a past, and the thirteenth after it.
"""
import io
import pathlib
import sys
import tarfile
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import numpy_helper
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

WORDS, LAYERS, TOKENS = 101, 2, 12


class Decoder(torch.nn.Module):
    """A language model whose cache is a list of tensors: keys and values of each layer."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, *past):
        cache = DynamicCache()
        for layer, (keys, values) in enumerate(zip(past[::2], past[1::2])):
            cache.update(keys, values, layer)
        logits = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True).logits
        return (logits, *[tensor for layer in cache.layers for tensor in (layer.keys, layer.values)])


def gpt2():
    config = GPT2Config(vocab_size=WORDS, n_layer=LAYERS, n_embd=32, n_head=2, n_positions=64)
    return GPT2LMHeadModel(config), (2, 16)


def llama():
    config = LlamaConfig(vocab_size=WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=LAYERS,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)
    return LlamaForCausalLM(config), (2, 8)


def export(make, path, dynamo):
    torch.manual_seed(0)
    model, (heads, size) = make()
    names = [f"past_{part}{layer}" for layer in range(LAYERS) for part in "kv"]
    example = (torch.zeros(1, 3, dtype=torch.int64), *[torch.randn(1, heads, 4, size) for _ in names])
    outputs = ["logits", *[name.replace("past", "present") for name in names]]
    if dynamo:
        open_ = torch.export.Dim.DYNAMIC
        options = {"dynamic_shapes": ({1: open_}, tuple({2: open_} for _ in names)), "opset_version": 18}
    else:
        axes = {"input_ids": {1: "tokens"}, "logits": {1: "tokens"}}
        axes |= {name: {2: "past"} for name in names} | {name: {2: "all"} for name in outputs[1:]}
        options = {"dynamic_axes": axes, "opset_version": 17}
    with torch.no_grad():
        torch.onnx.export(Decoder(model).eval(), example, path, input_names=["input_ids", *names], output_names=outputs,
                          dynamo=dynamo, external_data=False, **options)
    return {name: np.zeros((1, heads, 0, size), np.float32) for name in names}


def main():
    warnings.simplefilter("ignore")
    with tarfile.open(sys.argv[1], "w:xz") as archive, tempfile.TemporaryDirectory() as folder:
        def add(path, content):
            entry = tarfile.TarInfo(f"decoders/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))

        for name, make, dynamo in [("gpt2", gpt2, True), ("llama", llama, False)]:
            path = pathlib.Path(folder) / f"{name}.onnx"
            past = export(make, str(path), dynamo)
            model = onnx.load(path)
            for part in [model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output]:
                # Where the exporter's sources are.
                part.ClearField("metadata_props")
                part.ClearField("doc_string")
            add(f"{name}/model.onnx", model.SerializeToString())
            session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            ids = np.random.default_rng(0).integers(0, WORDS, (1, TOKENS + 1))
            for k, tokens in enumerate([ids[:, :TOKENS], ids[:, TOKENS:]]):
                feeds = {"input_ids": tokens, **past}
                given = session.run(None, feeds)
                for kind, values in [("input", feeds.items()), ("output", zip([v.name for v in session.get_outputs()], given))]:
                    for at, (value, array) in enumerate(values):
                        message = numpy_helper.from_array(array, value).SerializeToString()
                        add(f"{name}/test_data_set_{k}/{kind}_{at}.pb", message)
                past = dict(zip(past, given[1:]))


if __name__ == "__main__":
    main()
