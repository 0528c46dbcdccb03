//! Limits on the cost of a model, with their defaults.

use crate::error::{Error, Kind, Remedy, Result, quote};
use std::cell::Cell;

/// Limits on the cost of loading and running a model. Exceeding one is an error of kind [`Kind::Limit`] that names the
/// limit, before the cost arises.
///
/// ```
/// use onnxref::{Kind, Limits, Model};
///
/// let mut limits = Limits::default();
/// limits.file_bytes = 10;
/// let error = Model::options().limits(limits).load("onnx-test-data/gather/onnx-1.12.0/node/test_gather_0/model.onnx");
/// assert_eq!(error.unwrap_err().kind(), Kind::Limit);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes read when a model is loaded: the file and its external data, counted each time they are read. Mapped
    /// files don't count. Default: 8 GiB.
    pub file_bytes: u64,
    /// Bytes of memory that loading may take, whatever the size of the file. Default: 64 MiB.
    pub load_bytes: u64,
    /// Bytes of memory that loading may take for each byte read (or mapped), in addition. Default: 8, as a small number of a
    /// list takes two bytes in a file, and up to sixteen while the list grows.
    pub load_bytes_per_byte: u64,
    /// Nested messages in a model file: a graph in an attribute of a node in a graph is three. Default, and maximum: 100.
    pub nesting: usize,
    /// Nodes, those of subgraphs included, and those that calls of functions become. Default: 10 million.
    pub nodes: usize,
    /// Bytes of a name. Default: 64 KiB.
    pub name_bytes: usize,
    /// Dimensions of a tensor or of a declared shape. Default: 64.
    pub rank: usize,
    /// Bytes of an output that an operator asks for. Default: 8 GiB.
    pub tensor_bytes: u64,
    /// Bytes of all tensors and scratch memory that a run holds at one time, and of pooled memory;
    /// excluding feeds and the model's constants. Default: 8 GiB.
    pub run_bytes: u64,
    /// Total number of elements that a run may produce. Default: 2^40.
    pub run_elements: u64,
    /// Nodes that a run may execute; a node counts each time it runs. Default: 2^30.
    pub run_nodes: u64,
    /// Steps of work beyond the elements produced, such as indices read. Default: 2^50.
    pub run_work: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            file_bytes: 8 << 30,
            load_bytes: 64 << 20,
            load_bytes_per_byte: 8,
            nesting: 100,
            nodes: 10_000_000,
            name_bytes: 64 << 10,
            rank: 64,
            tensor_bytes: 8 << 30,
            run_bytes: 8 << 30,
            run_elements: 1 << 40,
            run_nodes: 1 << 30,
            run_work: 1 << 50,
        }
    }
}

impl Limits {
    /// Limits for a service that runs models of strangers. They bound a load to about 1 GiB of memory, a run to 1 GiB
    /// and some minutes of work.
    ///
    /// | limit | value | why |
    /// |---|---|---|
    /// | `file_bytes` | 256 MiB | models of that size run within the other limits; larger ones are loaded knowingly |
    /// | `load_bytes` | 64 MiB | as by default: names, nodes and constants of a small file |
    /// | `load_bytes_per_byte` | 4 | packed elements of 2 bits become bytes |
    /// | `nesting` | 40 | twelve levels of subgraphs; exporters make two or three |
    /// | `nodes` | 100,000 | a language model of a hundred layers has 20,000 |
    /// | `name_bytes` | 4 KiB | exporters make names of some hundred bytes |
    /// | `rank` | 16 | models use up to 8 |
    /// | `tensor_bytes` | 512 MiB | half of what a run may hold, so that an operator has its input and its output |
    /// | `run_bytes` | 1 GiB | several runs at a time fit into an ordinary server |
    /// | `run_elements` | 2^34 | written in seconds |
    /// | `run_nodes` | 10 million | loops of some million trips, which take seconds |
    /// | `run_work` | 2^38 | a network of 100 billion multiplications runs, in seconds to minutes |
    ///
    /// Give each run a deadline too: [`Cancel::after`](crate::Cancel::after) with [`Model::run_with`](crate::Model::run_with).
    ///
    /// ```
    /// use onnxref::{Cancel, Limits, Model, inputs};
    /// use std::time::Duration;
    ///
    /// let mut limits = Limits::untrusted();
    /// limits.run_bytes = 256 << 20;
    /// # let bytes = std::fs::read("onnx-test-data/gather/onnx-1.12.0/node/test_gather_2d_indices/model.onnx").unwrap();
    /// // From bytes, a model has no files beside it.
    /// let model = Model::options().limits(limits).from_bytes(bytes)?;
    /// let rows = ndarray::array![[1f32, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]];
    /// let feeds = inputs![rows, ndarray::array![[0i64, 2]]];
    /// let outputs = model.run_with(feeds, &Cancel::after(Duration::from_secs(10)))?;
    /// assert_eq!(outputs["y"].shape(), [3, 1, 2]);
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn untrusted() -> Limits {
        Limits {
            file_bytes: 256 << 20,
            load_bytes_per_byte: 4,
            nesting: 40,
            nodes: 100_000,
            name_bytes: 4 << 10,
            rank: 16,
            tensor_bytes: 512 << 20,
            run_bytes: 1 << 30,
            run_elements: 1 << 34,
            run_nodes: 10_000_000,
            run_work: 1 << 38,
            ..Limits::default()
        }
    }
}

macro_rules! limits_by_name {
    ($($name:ident),*) => {
        impl Limits {
            /// The names of all limits.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// Sets a limit by name.
            ///
            /// # Errors
            /// If there is no such limit, or the value is out of range on this system.
            pub fn set(&mut self, name: &str, value: u64) -> Result<()> {
                match name {
                    $(stringify!($name) => {
                        let value = value.try_into();
                        self.$name = value.map_err(|_| Error::input(format!("the limit {name} is out of range")))?;
                    })*
                    _ => {
                        let (name, all) = (quote(name), Self::NAMES.join(", "));
                        return Err(Error::input(format!("there is no limit {name}: the limits are {all}")));
                    }
                }
                Ok(())
            }
        }
    };
}

limits_by_name! {
    file_bytes, load_bytes, load_bytes_per_byte, nesting, nodes, name_bytes, rank, tensor_bytes, run_bytes, run_elements,
    run_nodes, run_work
}

impl Limits {
    /// Checks a rank.
    pub(crate) fn check_rank(&self, what: &str, rank: usize) -> Result<()> {
        if rank <= self.rank {
            return Ok(());
        }
        Err(exceeded("rank", what, rank as u128, "dimensions", self.rank as u64))
    }

    /// Maximum memory for faults.
    pub(crate) fn fault_bytes(&self) -> usize {
        usize::try_from(self.load_bytes / 32).unwrap_or(usize::MAX).min(1 << 20)
    }
}

/// The memory budget of loading, charged as memory is taken: [`Limits::load_bytes`], plus some for each byte read.
#[derive(Debug)]
pub(crate) struct Budget {
    per_byte: u64,
    allowed: Cell<u64>,
    taken: Cell<u64>,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Budget {
        Budget { per_byte: limits.load_bytes_per_byte, allowed: Cell::new(limits.load_bytes), taken: Cell::new(0) }
    }

    /// Raises the budget for bytes that were read or mapped.
    pub(crate) fn allow_for(&self, read: u64) {
        self.allowed.set(self.allowed.get().saturating_add(self.per_byte.saturating_mul(read)));
    }

    /// Takes `bytes` of memory.
    ///
    /// # Errors
    /// If fewer bytes are left: none are taken.
    pub(crate) fn take(&self, bytes: u64) -> Result<()> {
        let (taken, allowed) = (self.taken.get().saturating_add(bytes), self.allowed.get());
        if taken > allowed {
            return Err(exceeded("load_bytes", "loading the model takes", taken.into(), "bytes", allowed));
        }
        self.taken.set(taken);
        Ok(())
    }

    /// Gives back `bytes` that were taken.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.taken.set(self.taken.get().saturating_sub(bytes));
    }

    /// Bytes taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Bytes that may be taken in total.
    pub(crate) fn allowed(&self) -> u64 {
        self.allowed.get()
    }

    /// Bytes that may still be taken.
    pub(crate) fn left(&self) -> u64 {
        self.allowed.get().saturating_sub(self.taken.get())
    }
}

/// Error for exceeding `limit`: `what` is `value`, in `unit`.
#[cold]
pub(crate) fn exceeded(limit: &'static str, what: &str, value: u128, unit: &str, allowed: u64) -> Error {
    Error::new(Kind::Limit, format!("{what} {value} {unit}: the limit is {allowed}"))
        .with_remedy(Remedy::RaiseLimit(limit))
        .at(|place| {
            place.limit = Some(limit);
            place.value = i128::try_from(value).ok();
            place.size = usize::try_from(allowed).ok();
        })
}

#[cfg(test)]
mod tests {
    use super::{Budget, Limits};

    /// What can't be had leaves what can.
    #[test]
    fn what_is_refused_takes_nothing() {
        let budget = Budget::new(&Limits { load_bytes: 100, ..Limits::default() });
        assert!(budget.take(60).is_ok() && budget.take(41).is_err() && budget.take(40).is_ok());
        assert_eq!((budget.taken(), budget.left()), (100, 0));
    }
}
