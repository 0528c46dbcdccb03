"""Loading and running models."""

from __future__ import annotations

import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from . import _onnxref
from ._arrays import with_string_dtype
from ._errors import InputError, LoadError, ModelNotFoundError, OnnxrefError
from ._onnxref import Node
from ._options import SessionOptions, Several, checked, end_of, seconds

if TYPE_CHECKING:
    import onnx

#: A path, the bytes of a file, an `onnx.ModelProto`, or a document.
Model = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, "onnx.ModelProto", _onnxref.Document]
#: What sees each node of a run, and the values that it gives by name. Their arrays can't be written to.
Watch = Callable[[Node, dict[str, Any]], object]


@dataclass(frozen=True)
class NodeArg:
    """What a model declares about an input or output."""

    name: str
    #: As onnxruntime writes it: "tensor(float)", "seq(tensor(int64))"; None if it isn't declared.
    type: str | None
    #: Numbers, names of open dimensions, and None for one without a name; None if it isn't declared.
    shape: list[int | str | None] | None
    #: Whether it may be omitted, because it has an initializer.
    optional: bool = False


@dataclass(frozen=True)
class ModelMetadata:
    """What the author of a model says about it."""

    producer_name: str
    domain: str
    description: str
    version: int
    custom_metadata_map: dict[str, str]
    graph_name: str = ""
    graph_description: str = ""


class InferenceSession:
    """A loaded model, with the methods of onnxruntime's InferenceSession and onnx's ReferenceEvaluator.

    Many threads can run it at once. It can be pickled: as its path, a hash of that file, and the options; or as its bytes.
    """

    def __init__(
        self,
        model: Model | None = None,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        *,
        threads: int | None = None,
        limits: Mapping[str, int] | None = None,
        untrusted: bool = False,
        allow: Several = (),
        external_roots: Several = (),
        external_data: Mapping[str, bytes] | None = None,
        hard_links: bool = False,
        fast_math: bool = False,
        optimize: bool = True,
        mmap: bool = False,
        dimensions: Mapping[str, int] | None = None,
        string_dtype: bool = False,
        **others: Any,
    ) -> None:
        """Loads a model.

        threads: the most that a run uses; all processors by default. limits: of loading and running, by name, such as
        {"run_bytes": 2**30}. untrusted: lower limits, for models of strangers. allow: departures from the standard that are
        accepted. external_roots: folders into which links of external data may lead. external_data: the content of files of
        the model, by location. hard_links: accept files with more than one. fast_math: sum quantized products in integers,
        not bit by bit. optimize: compute constants at load, and put fast operators in the place of several. mmap: map the
        files; nobody may change them meanwhile. dimensions: sizes of open dimensions, by name. string_dtype: outputs of
        strings are arrays of NumPy 2's StringDType, not of objects.

        sess_options, providers, provider_options and other arguments are onnxruntime's. The only provider is the CPU. The
        model may also be called `path_or_bytes`, as in onnxruntime, or `proto`, as in onnx.
        """
        for name in ("path_or_bytes", "proto"):
            if model is None and name in others:
                model = others.pop(name)
        unknown = sorted(set(others) - _OF_ONNXRUNTIME)
        if unknown:
            raise TypeError(f"InferenceSession has no argument {unknown[0]!r}")
        options = dict(
            threads=threads,
            limits=limits,
            untrusted=untrusted,
            allow=allow,
            external_roots=external_roots,
            external_data=external_data,
            hard_links=hard_links,
            fast_math=fast_math,
            optimize=optimize,
            mmap=mmap,
            dimensions=dimensions,
            string_dtype=string_dtype,
        )
        self._load(source_of(model), checked(options, sess_options))

    def _load(self, source: str | bytes, options: dict[str, Any]) -> None:
        # The process may go to another folder.
        self._source, self._options = os.path.abspath(source) if isinstance(source, str) else source, options
        if options["string_dtype"] and not hasattr(np.dtypes, "StringDType"):
            raise InputError(f"string_dtype=True needs NumPy 2, but this is NumPy {np.__version__}")
        stamp = _stamp(self._source)
        try:
            self._session = _onnxref.Session(source, options)
        except ModelNotFoundError as error:
            if isinstance(source, str) and not os.path.exists(source):
                error.filename = source
            raise
        files = [os.fspath(file) for file in self._session.external_files()]
        #: What changes when a file of the model is written: the model's own, and those beside it by name.
        self._stamps = (stamp, {file: _stamp(_beside(self._source, file)) for file in files})
        self._inputs = [NodeArg(*info, optional) for info, optional in self._session.inputs()]
        self._outputs = [NodeArg(*info) for info in self._session.outputs()]
        self._run = self._session.run
        #: Values that only the model without optimisation gives, and that model, once it is needed.
        self._hidden: set[str | None] = set()
        self._plain: InferenceSession | None = None

    def run(
        self,
        output_names: str | Sequence[str] | None,
        input_feed: Mapping[str, Any] | None = None,
        run_options: Any = None,
        *,
        watch: Watch | None = None,
        timeout: float | None = None,
        intermediate: bool = False,
        feed_inputs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Runs the model, and returns the values of `output_names`, or all outputs.

        A name may be that of any value that a node of the graph gives. For one that optimisation computed, replaced or left
        out, the model is loaded again without it, and kept.

        Feeds are arrays by name: of NumPy, or anything with the buffer protocol, DLPack or `__array_interface__`; numbers of
        Python become the type that the model declares. Sequences are lists, optionals a value or None, maps dicts. An array
        may not be written to while a run reads it. `feed_inputs` is onnx's name of `input_feed`.

        `watch` is called with each node that has run. `timeout` is in seconds. `terminate = True` of RunOptions ends the run,
        also from another thread. `intermediate`, as in onnx, returns a dict of
        what is fed and of all values that nodes of the graph give, from a model that is loaded without optimisation.
        """
        if type(input_feed) is not dict:
            input_feed = _feeds(feed_inputs if input_feed is None else input_feed)
        if intermediate:
            given = sorted(self._values())
            values = self._unoptimized().run(given, input_feed, run_options, watch=watch, timeout=timeout) if given else []
            return {**input_feed, **dict(zip(given, values))}
        timeout = None if timeout is None else seconds(timeout)
        # None and no names mean all, as in onnxruntime.
        names = ([output_names] if isinstance(output_names, str) else list(output_names)) if output_names else None
        if names is not None and watch is None and not self._hidden.isdisjoint(names):
            return self._unoptimized().run(names, input_feed, run_options, timeout=timeout)
        end = None if run_options is None else end_of(run_options)
        start = time.monotonic() if timeout is not None else 0.0
        try:
            values = self._run(names, input_feed, watch, timeout, end)
        except InputError as error:
            if not self._hides(error):
                raise
            if timeout is not None:
                timeout = max(0.0, timeout - (time.monotonic() - start))
            values = self._unoptimized()._run(names, input_feed, None, timeout, end)
            self._hidden.add(error.value_name)
        return [with_string_dtype(value) for value in values] if self._options["string_dtype"] else values

    def _values(self) -> set[str]:
        """The values that nodes of the graph give."""
        self._check_unchanged("it can't be loaded again")
        nodes = _onnxref.Document.open(self._source).nodes
        return {name for node in nodes for name in node.outputs if name}

    def _has_inside(self, name: str | None, otherwise: bool) -> bool:
        """Whether a node of the graph gives a value of this name, or `otherwise` if that isn't known: of OpenVINO IR."""
        try:
            return name in self._values()
        except OnnxrefError:
            return otherwise

    def _hides(self, error: InputError) -> bool:
        """Whether a run failed because optimisation left no node that gives a value."""
        about_a_name = error.node_index is None and error.value_name is not None
        return self._options["optimize"] and about_a_name and self._has_inside(error.value_name, False)

    def _unoptimized(self) -> InferenceSession:
        """The same model without optimisation."""
        if not self._options["optimize"]:
            return self
        if self._plain is None:
            plain = InferenceSession.__new__(InferenceSession)
            plain._load(self._source, {**self._options, "optimize": False})
            self._plain = plain
        return self._plain

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that have to be fed. As in onnxruntime, those with an initializer are not among them."""
        return [info for info in self._inputs if not info.optional]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that may be omitted, because they have an initializer."""
        return [info for info in self._inputs if info.optional]

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, as ReferenceEvaluator has them."""
        return [info.name for info in self._inputs]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, as ReferenceEvaluator has them."""
        return [info.name for info in self._outputs]

    @property
    def opsets(self) -> dict[str, int]:
        """The imported opsets: domain, empty for ai.onnx, and version."""
        return self._session.opsets()

    @property
    def metadata(self) -> dict[str, str]:
        """The model's metadata: what its author set of "producer_name", .., and its own properties."""
        fields, own = self._session.metadata()
        return dict(fields + own)

    def get_modelmeta(self) -> ModelMetadata:
        """The model's metadata, as onnxruntime has it."""
        entries, own = self._session.metadata()
        fields = defaultdict(str, entries)
        version = int(fields["model_version"] or 0)
        of_model = fields["producer_name"], fields["domain"], fields["doc_string"], version, dict(own)
        return ModelMetadata(*of_model, *self._session.graph())

    @property
    def notes(self) -> list[str]:
        """Harmless departures from the standard, and parts of the model that are not used."""
        return self._session.notes()

    def get_providers(self) -> list[str]:
        """The processor."""
        return ["CPUExecutionProvider"]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The processor, which has no options."""
        return {"CPUExecutionProvider": {}}

    def get_session_options(self) -> SessionOptions:
        """The options of onnxruntime that mean something here."""
        options = SessionOptions()
        options.intra_op_num_threads = self._options["threads"] or 0
        for name, size in self._options["dimensions"].items():
            options.add_free_dimension_override_by_name(name, size)
        return options

    def _repr_svg_(self) -> str:
        """A picture of the graph, for notebooks."""
        name = os.path.basename(self._source) if isinstance(self._source, str) else "model"
        return _onnxref.svg(self._source, self._options, name)

    def __repr__(self) -> str:
        named = f" of {self._source}" if isinstance(self._source, str) else ""
        return f"<InferenceSession{named}: {', '.join(self.input_names)} -> {', '.join(self.output_names)}>"

    def __getstate__(self) -> dict[str, Any]:
        source = self._source
        if isinstance(source, bytes):
            return {"source": source, "options": self._options}
        self._check_unchanged("the model can't be pickled")
        files = {file: _sha256(_beside(source, file), sampled=True) for file in self._stamps[1]}
        return {"source": source, "sha256": _sha256(source), "files": files, "options": self._options}

    def _check_unchanged(self, otherwise: str) -> None:
        """The files of the model are those that were loaded; if not, an error says what can't be done."""
        source, (own, others) = self._source, self._stamps
        for path, stamp in [(source, own), *((_beside(source, file), stamp) for file, stamp in others.items())]:
            if not isinstance(path, str) or _stamp(path) == stamp:
                continue
            if not os.path.exists(path):
                missing = ModelNotFoundError(f"{path} isn't there any more: {otherwise}")
                missing.filename = path if path == source else None
                raise missing
            raise LoadError(f"{path} was changed since it was loaded: {otherwise}")

    def __setstate__(self, state: dict[str, Any]) -> None:
        source = state["source"]
        if isinstance(source, str):
            hashes = [(source, _sha256(source), state["sha256"])]
            for file, pickled in state["files"].items():
                hashes.append((_beside(source, file), _sha256(_beside(source, file), sampled=True), pickled))
            for path, found, pickled in hashes:
                if found != pickled:
                    raise LoadError(f"{path} is not the file that was pickled: its hash is another")
        self._load(source, state["options"])


ReferenceEvaluator = InferenceSession

#: Arguments of onnxruntime and of ReferenceEvaluator that mean nothing here.
_OF_ONNXRUNTIME = {"disabled_optimizers", "verbose", "optimized"}


def run(model: Model | InferenceSession, /, **arrays: Any) -> dict[str, Any]:
    """Runs a model on arrays by the names of its inputs, and returns its outputs by name."""
    session = model if isinstance(model, InferenceSession) else InferenceSession(model)
    return dict(zip(session.output_names, session.run(None, arrays)))


def _feeds(feeds: Any) -> dict[str, Any]:
    if not hasattr(feeds, "keys"):
        kind = type(feeds).__name__
        raise TypeError(f"input_feed: expected a dict of arrays by the names of inputs, not a value of type {kind}")
    return dict(feeds)


def source_of(model: Any) -> str | bytes:
    """A path, or the bytes of a model."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if isinstance(model, _onnxref.Document):
        return model.to_bytes()
    if hasattr(model, "SerializeToString"):
        serialized: bytes = model.SerializeToString()
        return serialized
    raise TypeError(f"a {type(model).__name__} is not a model: expected a path, bytes or an onnx.ModelProto")


def _stamp(source: str | bytes) -> tuple[int, int] | None:
    """What changes when a file is written."""
    if isinstance(source, bytes):
        return None
    try:
        stat = os.stat(source)
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _beside(source: str | bytes, file: str) -> str:
    """The path of a file in the model's folder."""
    return os.path.join(os.path.dirname(source), file) if isinstance(source, str) else file


#: Of external data with more bytes than these pieces hold, these many pieces are hashed, evenly from the first bytes to the
#: last: a table may be as large as a disk, and each worker looks at it.
_PIECES, _PIECE = 64, 1 << 20


def _sha256(path: str, sampled: bool = False) -> str:
    """The hash of a file: of its size and of some of it, if it is large and `sampled`; else of all."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.sha256()
            size = os.fstat(file.fileno()).st_size
            if sampled and size > _PIECES * _PIECE:
                digest.update(str(size).encode())
                for k in range(_PIECES):
                    file.seek((size - _PIECE) * k // (_PIECES - 1))
                    digest.update(file.read(_PIECE))
                return digest.hexdigest()
            while piece := file.read(1 << 20):
                digest.update(piece)
            return digest.hexdigest()
    except OSError as error:
        raised = ModelNotFoundError if isinstance(error, FileNotFoundError) else LoadError
        raise raised(f"{path}: {error.strerror}") from error
