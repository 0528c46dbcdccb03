#!/usr/bin/env python3
"""Exports every version of every operator in the installed `onnx` package as one text table.

    python tools/export_standard.py src/schema/standard.txt           writes the table
    python tools/export_standard.py --check src/schema/standard.txt   exits 1 when the table differs

The table's form is the contract with `src/schema/`: a block for each version, sorted by key and version,
with its signature, its attributes and its type parameters.
"""

import argparse
import difflib
import json
import math
import re
import sys
from ctypes import c_float
from pathlib import Path

import onnx
from onnx import AttributeProto, defs, helper

# Named sets of types. A definition may use the sets above it. The order in which the types appear here is also
# the order in which the table lists them.
SETS = {
    "@floats": "float16 float double",
    "@ints": "int8 int16 int32 int64",
    "@uints": "uint8 uint16 uint32 uint64",
    "@numbers": "@floats @ints @uints",
    "@all": "@numbers bool string complex64 complex128",
    "@ir4": "@all bfloat16",
    "@ir9": "@ir4 float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz",
    "@ir10": "@ir9 uint4 int4",
    "@ir11": "@ir10 float4e2m1",
    "@ir12": "@ir11 float8e8m0",
    "@ir13": "@ir12 uint2 int2",
    "@ir14": "@ir13 float6e2m3 float6e3m2",
}
KINDS = set(AttributeProto.AttributeType.keys()) - {"UNDEFINED"}
Option = defs.OpSchema.FormalParameterOption


# By what an operator was replaced is said in its documentation alone.
REPLACED_BY = {
    "Scatter": "ScatterElements",
    "TreeEnsembleClassifier": "TreeEnsemble",
    "TreeEnsembleRegressor": "TreeEnsemble",
    "Upsample": "Resize",
}

def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="compare with PATH, write nothing")
    arguments.add_argument("path", type=Path, metavar="PATH")
    arguments = arguments.parse_args()
    new = table()
    if not arguments.check:
        arguments.path.write_text(new, encoding="utf-8", newline="\n")
        return
    old = arguments.path.read_text(encoding="utf-8")
    if old == new:
        return
    diff = list(difflib.unified_diff(old.splitlines(), new.splitlines(), str(arguments.path), "exported", "", "", 1, ""))
    print("\n".join(diff[:40] or ["only line endings differ"]))
    if len(diff) > 40:
        print(f"... {len(diff) - 40} more lines")
    sys.exit(1)


def table():
    schemas = defs.get_all_schemas_with_history()
    lines = [
        f"# ONNX operators, every version: exported from onnx {onnx.__version__} (Apache-2.0)"
        " by tools/export_standard.py. Do not edit."
    ]
    newest = {domain: latest for domain, (_, latest) in defs.C.schema_version_map().items()}
    newest |= {s.domain: max(newest.get(s.domain, 0), s.since_version) for s in schemas}
    newest[""] = defs.onnx_opset_version()
    lines += [f"# newest {domain or 'ai.onnx'} {newest[domain]}" for domain in sorted(newest)]
    lines += [f"{name} = {types}" for name, types in SETS.items()]
    for schema in sorted(schemas, key=lambda s: (key(s).encode(), s.since_version)):
        lines += ["", *block(schema)]
    return "\n".join(lines) + "\n"


def key(schema):
    return f"{schema.domain}.{schema.name}" if schema.domain else schema.name


def block(schema):
    label = f"{key(schema)} {schema.since_version}"
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    require(len(constraints) == len(schema.type_constraints), f"{label}: a type parameter is declared twice")
    clash = constraints.keys() & (schema.attributes.keys() | KNOWN)
    require(not clash, f"{label}: type parameter named like an attribute or a type: {clash}")
    for side in ("input", "output"):
        check_arity(label, side, getattr(schema, side + "s"), getattr(schema, "min_" + side), getattr(schema, "max_" + side))

    inputs, outputs = (
        ", ".join(parameter(label, p, constraints) for p in parameters) for parameters in (schema.inputs, schema.outputs)
    )
    return [
        label + (f" deprecated {REPLACED_BY.get(schema.name, '')}".rstrip() if schema.deprecated else ""),
        f"  ({inputs}) -> ({outputs})",
        *(f"  {name}: {attribute(schema.attributes[name])}" for name in sorted(schema.attributes)),
        *(f"  {name}: {type_set(label, types)}" for name, types in constraints.items()),
    ]


def parameter(label, p, constraints):
    require(not re.search(r"[\s,:?*+()]", p.name), f"{label}: parameter {p.name!r} can't be written in a signature")
    mark = ""
    if p.option == Option.Optional:
        mark = "?"
    elif p.option == Option.Variadic:
        require(p.min_arity in (0, 1), f"{label}: {p.name} is variadic with a minimum of {p.min_arity}")
        mark = "*+"[p.min_arity]
    each = "" if p.is_homogeneous else "each "
    require(not each or p.option == Option.Variadic, f"{label}: {p.name} is heterogeneous but not variadic")
    type_ = p.type_str if p.type_str in constraints else short(p.type_str)
    require(type_ in constraints or innermost(type_) in KNOWN, f"{label}: {p.name} has the unknown type {p.type_str}")
    return f"{p.name}{mark}: {each}{type_}"


def check_arity(label, side, parameters, least, most):
    """Warns when a schema's own bounds are not the ones that follow from its parameters."""
    count = 0
    for i, p in enumerate(parameters):
        if p.option == Option.Single:
            count = i + 1
        elif p.option == Option.Variadic:
            count = i + p.min_arity
    variadic = any(p.option == Option.Variadic for p in parameters)
    bounds = (count, 2**31 - 1 if variadic else len(parameters))
    if (least, most) != bounds:
        print(f"{label}: {side}s are {least}..={most}, the parameters say {bounds[0]}..={bounds[1]}", file=sys.stderr)


def attribute(a):
    kind = a.type.name
    require(kind in KINDS, f"attribute {a.name} is of the unknown kind {kind}")
    if a.required:
        return f"{kind} required"
    if a.default_value.type == AttributeProto.UNDEFINED:
        return kind
    return f"{kind} = {literal(helper.get_attribute_value(a.default_value))}"


def literal(value):
    if isinstance(value, bytes):
        return json.dumps(value.decode())
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_literal(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    sys.exit(f"no way to write the default {value!r}")


def float_literal(value):
    """The fewest digits that give back the same f32."""
    if not math.isfinite(value):
        return str(value)
    digits = next(d for d in (f"{value:.{n}g}" for n in range(1, 10)) if c_float(float(d)).value == value)
    return digits if "." in digits or "e" in digits else digits + ".0"


def short(type_):
    """`seq(tensor(float))` -> `seq(float)`"""
    type_ = type_.replace(" ", "").replace("sparse_tensor(", "sparse(")
    return re.sub(r"\btensor\((\w+)\)", r"\1", type_)


def innermost(type_):
    """`optional(seq(float))` -> `float`, `map(int64,float)` -> `float`"""
    return re.split(r"[(,]", type_.rstrip(")"))[-1]


def type_set(label, types):
    """Tensors first, then sequences, optionals and optional sequences, then what is left."""
    types = {short(t) for t in types}
    unknown = {t for t in types if innermost(t) not in KNOWN}
    require(types and not unknown, f"{label}: a type parameter with unknown types, or none: {unknown}")
    words = []
    for before, after in (("", ""), ("seq(", ")"), ("optional(", ")"), ("optional(seq(", "))")):
        whole = {before + t + after: t for t in ORDER}
        bare = {whole[t] for t in types & whole.keys()}
        types -= whole.keys()
        words += [before + word + after for word in in_sets(bare)]
    words += sorted(types)
    # This is how a reader tells the line from an attribute's.
    require(words[0] not in KINDS, f"{label}: {words[0]} reads as the kind of an attribute")
    return " ".join(words)


def in_sets(bare):
    """Writes types with the sets' names: the largest contained set, again for the rest, then single types."""
    words = []
    for name, members in sorted(MEMBERS.items(), key=lambda item: -len(item[1])):
        if members <= bare:
            words.append(name)
            bare = bare - members
    return words + [t for t in ORDER if t in bare]


def members(name):
    return [t for word in SETS[name].split() for t in (members(word) if word in SETS else [word])]


def require(holds, message):
    if not holds:
        sys.exit(message)


MEMBERS = {name: set(members(name)) for name in SETS}
ORDER = members(list(SETS)[-1])
KNOWN = set(ORDER)

if __name__ == "__main__":
    main()
