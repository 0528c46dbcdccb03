//! Tensors: initializers, and those in attributes.

use super::message::message;
use super::wire::{read, write};
use super::{Entry, Part};
use crate::dtype::{DType, byte_count};
use crate::error::{Error, Kind, Result, quote};
use crate::limits::{Budget, Limits};
pub use crate::onnx::External;
use crate::tensor::{Tensor, pack, packed_size};
use bytes::Bytes;

message! {
    /// A tensor (`TensorProto`): an initializer, or the value of an attribute. Elements that are not raw data are among
    /// the other fields.
    pub struct Initializer {
        /// The shape.
        dims: Vec<i64> = 1,
        /// The number of the element type.
        data_type: i32 = 2,
        /// The name.
        name: String = 8,
        /// The elements: a slice of the file that was read.
        raw_data: Option<Bytes> = 9,
        /// Text for people (`doc_string`).
        doc: String = 12,
        /// Where the elements are, if they are in another file: see [`Initializer::external`].
        external_data: Vec<Part<Entry>> = 13,
        /// 1 if the elements are in another file.
        data_location: i32 = 14,
        /// `metadata_props`
        metadata: Vec<Part<Entry>> = 16,
    }
}

message! {
    /// A sparse tensor (`SparseTensorProto`).
    pub struct SparseInitializer {
        /// The elements that are not zero. Their tensor has the name.
        values: Option<Box<Part<Initializer>>> = 1,
        /// Where they are.
        indices: Option<Box<Part<Initializer>>> = 2,
        /// The shape.
        dims: Vec<i64> = 3,
    }
}

/// Fields with elements that are not raw data.
const TYPED: [u32; 6] = [4, 5, 6, 7, 10, 11];

impl Initializer {
    /// A tensor with its name.
    pub fn new(name: impl Into<String>, tensor: &Tensor) -> Initializer {
        // What was just written can be read, and no limit is in the way.
        let unlimited = Budget::new(&Limits { load_bytes: u64::MAX, ..Limits::default() });
        read(&tensor.to_proto_bytes(&name.into()).into(), &unlimited).unwrap_or_default()
    }

    /// The tensor, if its elements are in the model file.
    ///
    /// # Errors
    /// The elements don't fit the type and the shape, or are in another file.
    pub fn tensor(&self) -> Result<Tensor> {
        let mut bytes = Vec::new();
        write(self, &mut bytes)?;
        Tensor::from_proto_bytes(bytes)
    }

    /// The element type.
    pub fn dtype(&self) -> Option<DType> {
        DType::from_code(self.data_type)
    }

    /// Where the elements are, if they are in another file.
    ///
    /// # Errors
    /// The entries that tell it are not valid.
    pub fn external(&self) -> Result<Option<External>> {
        if self.data_location != 1 {
            return Ok(None);
        }
        let pairs: Vec<_> = self.external_data.iter().map(|e| (e.key.as_str(), e.value.as_str())).collect();
        External::parse(&pairs).map(Some).map_err(|error| self.blame(error))
    }

    /// Says that the elements are in another file.
    pub fn set_external(&mut self, external: &External) {
        self.clear();
        self.data_location = 1;
        let mut entries = vec![Entry::new("location", &external.location).into()];
        entries.push(Entry::new("offset", external.offset.to_string()).into());
        entries.extend(external.length.map(|length| Entry::new("length", length.to_string()).into()));
        self.external_data = entries;
    }

    /// Sets the elements, in the order and packing of the format.
    pub fn set_raw(&mut self, raw: impl Into<Bytes>) {
        self.clear();
        self.raw_data = Some(raw.into());
    }

    fn clear(&mut self) {
        TYPED.iter().for_each(|field| {
            self.other.remove(*field);
        });
        (self.raw_data, self.data_location) = (None, 0);
        self.external_data.clear();
    }

    /// The number of bytes of the elements as raw data or in another file, which follows from the type and the shape.
    ///
    /// # Errors
    /// The type or the shape is not valid, or the elements are strings.
    pub fn byte_len(&self) -> Result<u64> {
        let Some(dtype) = self.dtype().filter(|dtype| *dtype != DType::String) else {
            return Err(self.blame(Error::model(format!("elements of type {} have no size", self.data_type))));
        };
        let size = |dim: &i64| {
            usize::try_from(*dim)
                .map_err(|_| self.blame(Error::model(format!("a dimension is {dim}: allowed 0 or more"))))
        };
        let shape = self.dims.iter().map(size).collect::<Result<Vec<_>>>()?;
        let bytes = byte_count(dtype, &shape).map_err(|error| self.blame(error.with_kind(Kind::Model)))?;
        Ok(packed_size(dtype, bytes / dtype.size()))
    }

    /// The number of bytes of the elements, which are in another file: as many as type and shape take.
    pub(super) fn external_len(&self, external: &External) -> Result<u64> {
        let need = self.byte_len()?;
        external.check_length(need).map_err(|error| self.blame(error))?;
        Ok(need)
    }

    /// The elements as raw data, if they are in the model file, whatever field has them.
    ///
    /// # Errors
    /// As [`Initializer::tensor`].
    pub(super) fn raw(&self) -> Result<Bytes> {
        match &self.raw_data {
            Some(raw) if !raw.is_empty() => Ok(raw.clone()),
            _ => self.tensor().map(|tensor| pack(tensor.dtype(), tensor.bytes()).into()),
        }
    }

    pub(super) fn blame(&self, error: Error) -> Error {
        blame(&self.name, error)
    }
}

/// Says which tensor an error is about, unless it says that already.
pub(super) fn blame(name: &str, error: Error) -> Error {
    let what = format!("tensor {}", quote(name));
    if error.to_string().starts_with(&format!("{what}: ")) { error } else { error.within(&what).about(name) }
}
