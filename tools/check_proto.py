"""Compares proto/onnx.proto with the definitions in the onnx package, fact by fact.

Needs `pip install onnx`; prints the differences and exits with 1 if there are any.
"""

import pathlib
import re
import sys

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from onnx import onnx_data_pb2, onnx_ml_pb2

PROTO = pathlib.Path(__file__).parent.parent / "proto" / "onnx.proto"
LABELS = {v: k[6:].lower() for k, v in FieldDescriptorProto.Label.items()}
TYPES = {v: k[5:].lower() for k, v in FieldDescriptorProto.Type.items()}


def official(message, scope):
    """The facts in a descriptor of a file or message, one line each."""
    is_file = isinstance(message, FileDescriptorProto)
    for enum in message.enum_type:
        yield f"enum {scope}.{enum.name}"
        for value in enum.value:
            yield f"{scope}.{enum.name}.{value.name} = {value.number}"
    for nested in message.message_type if is_file else message.nested_type:
        yield f"message {scope}.{nested.name}"
        yield from official(nested, f"{scope}.{nested.name}")
    if is_file:
        return
    for field in message.field:
        label = LABELS[field.label]
        if field.HasField("oneof_index"):
            label = f"oneof {message.oneof_decl[field.oneof_index].name}"
        kind = field.type_name or TYPES[field.type]
        packed = " packed" if field.options.packed else ""
        yield f"{scope}.{field.name} = {field.number}: {label} {kind}{packed}"
    for span in message.reserved_range:
        yield from (f"{scope} reserves {n}" for n in range(span.start, span.end))
    for name in message.reserved_name:
        yield f'{scope} reserves "{name}"'


def ours(text):
    """The facts in our file; knows only the part of the language that it uses."""
    text = re.sub(r"//.*", "", text)
    statements = [" ".join(s.split()) for s in re.findall(r"[^;{}]*[;{]|}", text)]
    declared, fields, blocks = set(), [], []
    for statement in statements:
        scope = ".onnx" + "".join(f".{name}" for kind, name in blocks if kind != "oneof")
        if opens := re.fullmatch(r"(message|enum|oneof) (\w+) {", statement):
            kind, name = opens.groups()
            blocks.append((kind, name))
            if kind != "oneof":
                declared.add(f"{scope}.{name}")
                yield f"{kind} {scope}.{name}"
        elif statement == "}":
            blocks.pop()
        elif value := re.fullmatch(r"(\w+) = (\d+);", statement):
            yield f"{scope}.{value[1]} = {value[2]}"
        elif field := re.fullmatch(
            r"(?:(optional|repeated|required) )?(\w+) (\w+) = (\d+)( \[packed = true\])?;", statement
        ):
            label, kind, name, number, packed = field.groups()
            label = label or "oneof " + blocks[-1][1]
            fields.append((scope, f"{scope}.{name} = {number}: {label}", kind, packed))
        elif reserved := re.fullmatch(r"reserved (.*);", statement):
            for item in reserved[1].split(", "):
                if item.startswith('"'):
                    yield f"{scope} reserves {item}"
                else:
                    first, _, last = item.partition(" to ")
                    for n in range(int(first), int(last or first) + 1):
                        yield f"{scope} reserves {n}"
        elif statement not in ('syntax = "proto2";', "package onnx;"):
            sys.exit(f"cannot read: {statement}")
    # Types last, when all are known: a name means the innermost type called so.
    for scope, fact, kind, packed in fields:
        if kind not in TYPES.values():
            while f"{scope}.{kind}" not in declared:
                scope = scope.rpartition(".")[0] or sys.exit(f"unknown type: {kind}")
            kind = f"{scope}.{kind}"
        yield f"{fact} {kind}{' packed' if packed else ''}"


expected = set()
for module in (onnx_ml_pb2, onnx_data_pb2):
    file = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    expected.update(official(file, f".{file.package}"))
actual = set(ours(PROTO.read_text(encoding="utf-8")))

for fact in sorted(expected - actual):
    print("missing:", fact)
for fact in sorted(actual - expected):
    print("not in onnx:", fact)
if expected != actual:
    sys.exit(1)
print(f"{len(actual)} facts agree")
