"""The program `onnxref`: `python -m onnxref`."""

import sys

from ._onnxref import main as _main


def main() -> None:
    """Runs the program with the arguments of this process, and ends with its status."""
    sys.exit(_main(["onnxref", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
