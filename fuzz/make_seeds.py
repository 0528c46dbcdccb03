"""Fills corpus/load and corpus/tensor from the test data, and corpus/operators and the others with bytes from nowhere
that are always the same. `cargo fuzz` starts from what is there.

    python3 fuzz/make_seeds.py [FOLDER]     FOLDER instead of fuzz/corpus
"""

import hashlib
import pathlib
import random
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
DATA = [HERE.parent / "onnx-test-data", HERE.parent / "tests" / "openvino"]
# Larger files make a fuzzer slow and teach it little.
LARGEST = 4096
# What the text form of a model has.
TEXT = """<ir_version: 10, opset_import: ["" : 23, "l" : 1], metadata_props: ["k": "v"]>
g (float[N, ?, "a b"] x, seq(map(int64, string)) s, any) => (float[] y)
<int4[3] one = {1, -2, 3}, string[2] words = {"a", "b # c"}, float[2] far = ["location": "w.bin"], float[2] h>
{
   #: graph doc_string: "g"
   [first] y, "" = l.F:over <a = 1, b: float = 1, c = [1.5, nan], d: ints = [], e: int = @outer> (x, , "any")
   z = If (x) <then_branch: graph = t () => (a) { a = Neg (y) }, value = float[1] {2}>
}
<domain: "l", opset_import: ["" : 23]> F <a, b: int = 3> (x) => (y) { y = Neg (x) }
"""


def members():
    """The content of every file of the test data, those in archives too, with its name."""
    for path in sorted(path for folder in DATA for path in folder.rglob("*")):
        if path.name.endswith(".tar.xz"):
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.isfile():
                        yield member.name, archive.extractfile(member).read()
        elif path.is_file():
            yield path.name, path.read_bytes()


def main():
    corpus = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "corpus"
    def add(target, content):
        folder = corpus / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)

    for name, content in members():
        if 0 < len(content) <= LARGEST:
            if name.endswith((".onnx", ".xml")):
                add("load", content)
            if name.endswith(".onnx"):
                add("document", content)
            elif name.endswith(".pb"):
                add("tensor", content)
    add("text", TEXT.encode())
    numbers = random.Random(1)
    for target in ["model", "operators", "external", "graphs"]:
        for _ in range(200):
            add(target, numbers.randbytes(numbers.randrange(16, 512)))
    for folder in sorted(corpus.iterdir()):
        print(f"{folder.name}: {len(list(folder.iterdir()))} seeds")


if __name__ == "__main__":
    main()
