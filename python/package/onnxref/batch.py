"""Models in batch jobs: a predictor that engines such as Ray Data and Spark send to their workers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import InputError
from ._session import InferenceSession, Model

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
    at its first batch, for all predictors of the same path and options. A row gives the same bits in any batch.
    """

    def __init__(
        self,
        model: Model,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        keep: Sequence[str] = (),
        threads: int | None = 1,
        mmap: bool = True,
        **options: Any,
    ) -> None:
        session = InferenceSession(model, threads=threads, mmap=mmap and not isinstance(model, bytes), **options)
        self._columns = dict(inputs or {})
        self._outputs = dict(outputs) if outputs is not None else {name: name for name in session.output_names}
        self._keep = list(keep)
        names = [info.name for info in session.get_inputs()]
        unknown = sorted(set(self._columns) - set(session.input_names))
        if unknown:
            raise InputError(f"the model has no input {unknown[0]!r}: it has {', '.join(session.input_names)}")
        for name in names:
            self._columns.setdefault(name, name)
        self._state = session.__getstate__()
        _SESSIONS.setdefault(_key(self._state), session)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs for columns of rows. Columns are arrays, or arrays of objects that are arrays or lists of one length."""
        missing = sorted(set(self._columns.values()) - set(batch))
        if missing:
            raise InputError(f"there is no column {missing[0]!r}: the columns are {', '.join(batch)}")
        feeds = {name: _stacked(column, batch[column]) for name, column in self._columns.items()}
        given = {name: batch[name] for name in self._keep}
        rows = len(next(iter(feeds.values()), ()))
        for name, value in feeds.items():
            if len(value) != rows:
                raise InputError(f"column {self._columns[name]!r} has {len(value)} rows, but others have {rows}")
        session = _session(self._state)
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

    def map_in_arrow(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """The outputs for batches of Arrow, as Spark's `mapInArrow` wants them. Further axes are lists of a fixed size."""
        import pyarrow

        for batch in batches:
            columns = {name: batch.column(name) for name in {*self._columns.values(), *self._keep}}
            kept = {name: columns[name] for name in self._keep}
            fed = {name: _from_arrow(name, columns[name]) for name in self._columns.values()}
            given = {**kept, **{name: value for name, value in self({**kept, **fed}).items() if name not in kept}}
            arrays = [value if name in kept else _to_arrow(value) for name, value in given.items()]
            yield pyarrow.RecordBatch.from_arrays(arrays, names=list(given))


#: The models of this process.
_SESSIONS: dict[str, InferenceSession] = {}
_LOCK = threading.Lock()


def _key(state: Mapping[str, Any]) -> str:
    source = state["source"] if isinstance(state["source"], str) else repr(state["source"])
    return json.dumps([source, state.get("sha256"), state["options"]], default=repr, sort_keys=True)


def _session(state: dict[str, Any]) -> InferenceSession:
    """The model of this process: threads that ask for it at once wait for one load."""
    key = _key(state)
    with _LOCK:
        if key not in _SESSIONS:
            session = InferenceSession.__new__(InferenceSession)
            session.__setstate__(state)
            _SESSIONS[key] = session
        return _SESSIONS[key]


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
    """The error of the first row that fails by itself; if none does, that of the batch."""
    for row in range(len(next(iter(feeds.values())))):
        try:
            session.run(names, {name: value[row : row + 1] for name, value in feeds.items()})
        except InputError as own:
            return _named(row, own)
    return error


def _named(row: int, error: InputError) -> InputError:
    named = type(error)(f"row {row}: {error}")
    named.__dict__.update(error.__dict__)
    named.row = row
    return named


def _from_arrow(name: str, column: Any) -> np.ndarray[Any, Any]:
    """A column of Arrow as an array, without a copy if it is of numbers; lists become an axis."""
    import pyarrow

    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise _named(row, InputError(f"column {name!r} is null"))
    if pyarrow.types.is_list(column.type) or pyarrow.types.is_large_list(column.type):
        lengths = np.diff(column.offsets.to_numpy())
        if lengths.size and (wrong := np.flatnonzero(lengths != lengths[0])).size:
            row = int(wrong[0])
            raise _named(row, InputError(f"column {name!r} has {lengths[row]} elements, but {lengths[0]} in row 0"))
        size = int(lengths[0]) if lengths.size else 0
        return _from_arrow(name, column.flatten()).reshape(len(column), size, *_inner(column.type.value_type))
    if pyarrow.types.is_fixed_size_list(column.type):
        inner = _from_arrow(name, column.flatten())
        return inner.reshape(len(column), column.type.list_size, *inner.shape[1:])
    array: np.ndarray[Any, Any] = column.to_numpy(zero_copy_only=False)
    return array


def _inner(kind: Any) -> tuple[int, ...]:
    """The axes within an element."""
    import pyarrow

    return (kind.list_size, *_inner(kind.value_type)) if pyarrow.types.is_fixed_size_list(kind) else ()


def _to_arrow(value: Any) -> Any:
    import pyarrow

    array = np.asarray(value)
    made = pyarrow.array(array.reshape(-1))
    for size in reversed(array.shape[1:]):
        made = pyarrow.FixedSizeListArray.from_arrays(made, size)
    return made
