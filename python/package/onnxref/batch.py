"""Models in batch jobs: a predictor that engines such as Ray Data and Spark send to their workers."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from ._errors import InputError
from ._session import InferenceSession, Model, NodeArg

if TYPE_CHECKING:
    import pyarrow


class Predictor:
    """Runs a model on columns of rows. The first axis of each input and output is that of the rows.

    inputs: the column of each input of the model, by its name; by default of the same name. outputs: the columns to give,
    each with the output of the model that it is; by default all outputs, under their names. keep: columns that go
    through as they are. Other options are those of InferenceSession. By default a run uses one thread, since engines start
    a worker for each processor, and a file is mapped, so that the workers of a machine share the memory of its weights:
    nobody may change it meanwhile.

    A predictor is pickled as the model's path, the hash of that file, and the options. A process loads a model once,
    at its first batch, for all predictors of the same path and options. It stays while there is one of them; the four that
    came last stay in any case, for engines that make a predictor for each task. A row gives the same bits in any batch.
    """

    def __init__(
        self,
        model: Model,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        keep: str | Sequence[str] = (),
        threads: int | None = 1,
        mmap: bool = True,
        **options: Any,
    ) -> None:
        session = InferenceSession(model, threads=threads, mmap=mmap and not isinstance(model, bytes), **options)
        self._columns = dict(inputs or {})
        self._outputs = dict(outputs) if outputs is not None else {name: name for name in session.output_names}
        self._keep = [keep] if isinstance(keep, str) else list(keep)
        names = [info.name for info in session.get_inputs()]
        unknown = sorted(set(self._columns) - set(session.input_names))
        if unknown:
            raise InputError(f"the model has no input {unknown[0]!r}: it has {', '.join(session.input_names)}")
        for name in self._outputs.values():
            if name not in session.output_names and not session._has_inside(name, True):
                raise InputError(f"the model has no output {name!r}: it has {', '.join(session.output_names)}")
        for name in names:
            self._columns.setdefault(name, name)
        self._declared = {info.name: info for info in [*session.get_overridable_initializers(), *session.get_inputs()]}
        self._given = {info.name: info for info in session.get_outputs()}
        self._state = session.__getstate__()
        self._key = _key(self._state)
        self._session: InferenceSession | None = _kept(self._key, lambda: session)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs for columns of rows. Columns are arrays, or arrays of objects that are arrays or lists of one length."""
        missing = sorted({*self._columns.values(), *self._keep} - set(batch))
        if missing:
            raise InputError(f"there is no column {missing[0]!r}: the columns are {', '.join(batch)}")
        feeds = {name: _stacked(column, batch[column]) for name, column in self._columns.items()}
        given = {name: batch[name] for name in self._keep}
        rows = len(next(iter(feeds.values()), ()))
        for name, value in feeds.items():
            if len(value) != rows:
                raise InputError(f"column {self._columns[name]!r} has {len(value)} rows, but others have {rows}")
        for name, column in given.items():
            if len(column) != rows:
                raise InputError(f"column {name!r} has {len(column)} rows, but others have {rows}")
        session = self._session
        if session is None:
            session = self._session = _kept(self._key, lambda: _loaded(self._state))
        names = list(self._outputs.values())
        try:
            values = session.run(names, feeds)
        except InputError as error:
            raise _of_a_row(session, names, feeds, error) from None
        for column, value in zip(self._outputs, values):
            if np.shape(value)[:1] != (rows,):
                raise InputError(f"output {column!r} has shape {np.shape(value)} for {rows} rows")
            given[column] = value
        return given

    def arrow(self, batch: Any) -> Any:
        """The outputs for a record batch or a table of Arrow. A table is run batch by batch. Further axes are lists."""
        import pyarrow

        if isinstance(batch, pyarrow.Table):
            return pyarrow.Table.from_batches(self._parts(batch))
        kept = {name: _column(batch, name) for name in self._keep}
        if batch.num_rows:
            fed = {name: _from_arrow(name, _column(batch, name)) for name in self._columns.values()}
            given = self({**kept, **fed})
            made = {name: _to_arrow(name, given[name]) for name in self._outputs}
        else:
            made = {field.name: pyarrow.array([], field.type) for field in self.output_columns}
        columns = {**kept, **made}
        return pyarrow.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def map_in_arrow(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """The outputs for batches of Arrow, as Spark's `mapInArrow` wants them."""
        return map(self.arrow, batches)

    @property
    def input_columns(self) -> pyarrow.Schema:
        """The columns that are fed, in the order of the inputs, with the types of Arrow that the model declares."""
        return _schema((column, name, self._declared.get(name)) for name, column in self._columns.items())

    @property
    def output_columns(self) -> pyarrow.Schema:
        """The columns that the model gives, with the types of Arrow that it declares. Those that are kept are not here."""
        return _schema((column, name, self._given.get(name)) for column, name in self._outputs.items())

    def _parts(self, table: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        start = 0
        for batch in table.to_batches() or [pyarrow.RecordBatch.from_pylist([], schema=table.schema)]:
            try:
                yield self.arrow(batch)
            except InputError as error:
                if error.row is None:
                    raise
                text = str(error).removeprefix(f"row {error.row}: ")
                raise _named(start + error.row, error, text) from None
            start += batch.num_rows


#: The models of this process that predictors have, and those that came last.
_SESSIONS: WeakValueDictionary[str, InferenceSession] = WeakValueDictionary()
_LAST: deque[InferenceSession] = deque(maxlen=4)
_LOCK = threading.Lock()


def _key(state: Mapping[str, Any]) -> str:
    """The hash of what a model is loaded from, and of the options."""

    def hashed(value: Any) -> str:
        return hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else repr(value)

    text = json.dumps(state, default=hashed, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _kept(key: str, load: Callable[[], InferenceSession]) -> InferenceSession:
    """The model of this process: threads that ask for it at once wait for one load."""
    with _LOCK:
        session = _SESSIONS.get(key)
        if session is None:
            session = _SESSIONS[key] = load()
        if session in _LAST:
            _LAST.remove(session)
        _LAST.append(session)
        return session


def _loaded(state: dict[str, Any]) -> InferenceSession:
    session = InferenceSession.__new__(InferenceSession)
    session.__setstate__(state)
    return session


def _stacked(column: str, value: Any) -> np.ndarray[Any, Any]:
    """An array of one type: arrays and lists in an array of objects are stacked."""
    array = np.asarray(value)
    if array.dtype == object and array.size and isinstance(array.flat[0], (np.ndarray, list, tuple)):
        first = np.asarray(array.flat[0])
        for row, each in enumerate(array.flat):
            if np.shape(each) != first.shape:
                raise _named(row, InputError(f"column {column!r} has shape {np.shape(each)}, but {first.shape} in row 0"))
        return np.stack([np.asarray(each) for each in array.flat])
    return array


def _of_a_row(session: InferenceSession, names: list[str], feeds: dict[str, Any], error: InputError) -> InputError:
    """The error of the first row that fails by itself; if none does, or no rows fail so too, that of the batch."""

    def of_rows(first: int, last: int) -> InputError | None:
        try:
            session.run(names, {name: value[first:last] for name, value in feeds.items()})
        except InputError as own:
            return own
        return None

    for row in range(len(next(iter(feeds.values())))):
        own = of_rows(row, row + 1)
        if own is not None:
            # What is wrong without any row too is the column, such as its type.
            none = of_rows(row, row)
            return error if none is not None and _place(none) == _place(own) else _named(row, own)
    return error


def _place(error: InputError) -> tuple[type[InputError], int | None, str | None]:
    return type(error), error.node_index, error.value_name


def _named(row: int, error: InputError, text: str | None = None) -> InputError:
    named = type(error)(f"row {row}: {error if text is None else text}")
    named.__dict__.update(error.__dict__)
    named.row = row
    return named


#: Types of elements as a model declares them, and as Arrow names them.
_ARROW = {
    "float": "float32", "double": "float64", "float16": "float16", "string": "string", "bool": "bool_",
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
}  # fmt: skip


def _schema(columns: Iterable[tuple[str, str, NodeArg | None]]) -> pyarrow.Schema:
    """Columns of values of the model: their names, those of the values, and what the model declares of these."""
    import pyarrow

    fields = []
    for column, name, info in columns:
        element = _ARROW.get((info and info.type or "").removeprefix("tensor(").removesuffix(")"))
        if info is None or info.type is None or info.shape is None:
            raise InputError(f"column {column!r}: the model declares no type and shape for {name!r}")
        if element is None or not info.shape:
            raise InputError(f"column {column!r}: {name!r} is {info.type} {info.shape}, for which Arrow has no column")
        kind = getattr(pyarrow, element)()
        for _ in info.shape[1:]:
            kind = pyarrow.list_(kind)
        fields.append((column, kind))
    return pyarrow.schema(fields)


def _column(batch: pyarrow.RecordBatch, name: str) -> Any:
    if name not in batch.schema.names:
        raise InputError(f"there is no column {name!r}: the columns are {', '.join(batch.schema.names)}")
    return batch.column(name)


def _from_arrow(name: str, column: Any) -> np.ndarray[Any, Any]:
    """A column of Arrow as an array, without a copy if it is of numbers; lists become axes."""
    from pyarrow import types

    sizes: list[int] = []
    rows, each = len(column), 1  # `each`: the elements of a row so far
    while True:
        if column.null_count:
            row = column.is_null().index(True).as_py() // each
            raise _named(row, InputError(f"column {name!r} is null" + (" within a list" if sizes else "")))
        if types.is_fixed_size_list(column.type):
            sizes.append(column.type.list_size)
        elif types.is_list(column.type) or types.is_large_list(column.type):
            lengths = np.diff(column.offsets.to_numpy())
            if (wrong := np.flatnonzero(lengths != lengths[0])).size:
                row = int(wrong[0])
                text = f"column {name!r} has {lengths[row]} elements, but {lengths[0]} in row 0"
                raise _named(row // each, InputError(text))
            sizes.append(int(lengths[0]) if lengths.size else 0)
        else:
            array: np.ndarray[Any, Any] = column.to_numpy(zero_copy_only=False)
            return array.reshape(rows, *sizes)
        each *= sizes[-1]
        column = column.flatten()


def _to_arrow(name: str, value: Any) -> Any:
    """An array as a column of Arrow; axes become lists."""
    import pyarrow

    array = np.asarray(value)
    try:
        made = pyarrow.array(array.reshape(-1))
    except pyarrow.ArrowException as error:
        raise InputError(f"column {name!r}: Arrow has no column of {array.dtype}") from error
    for axis in range(array.ndim - 1, 0, -1):
        lists, size = int(np.prod(array.shape[:axis])), array.shape[axis]
        if lists * size >= 1 << 31:
            raise InputError(f"column {name!r} has {lists * size} elements: a batch of Arrow has less than 2**31")
        made = pyarrow.ListArray.from_arrays(np.arange(lists + 1, dtype=np.int32) * np.int32(size), made)
    return made
