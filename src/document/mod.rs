//! Models as data: read a model file, change it, write it.
//!
//! A [`Document`] has what a file has, in the terms of the standard. Weights stay slices of the file, parts that nobody
//! changes are written byte for byte, and fields that this version doesn't know are kept. A document need not be a valid
//! model: [`Document::load`] tells.
//!
//! ```
//! use onnxref::document::{Document, Graph, Initializer, Node, ValueInfo};
//! use onnxref::{DType, Tensor, inputs};
//!
//! let graph = Graph::new("rows")
//!     .input(ValueInfo::tensor("indices", DType::Int64, ["n"]))
//!     .initializer(Initializer::new("table", &Tensor::from_elements(&[3, 2], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?))
//!     .node(Node::new("Gather", ["table", "indices"], ["y"]).attribute("axis", 0))
//!     .output(ValueInfo::untyped("y"));
//! let document = Document::new(graph, 22);
//! let model = document.load(&Default::default())?;
//! let outputs = model.run(inputs! { "indices" => ndarray::array![2i64] })?;
//! assert_eq!(outputs["y"].as_slice::<f32>()?, [5.0, 6.0]);
//! # Ok::<(), onnxref::Error>(())
//! ```

mod attribute;
mod changes;
mod convert;
mod data;
mod dims;
mod extract;
mod graph;
mod inline;
mod message;
mod names;
mod part;
mod save;
mod shapes;
mod simplify;
mod step;
mod tensor;
mod text;
mod types;
mod wire;

pub use attribute::{Attribute, AttributeValue};
pub use data::DataFile;
pub use graph::{Annotation, Content, Entry, Function, Graph, Node, OpsetImport};
pub use part::{Fields, Part};
pub use tensor::{External, Initializer, SparseInitializer};
pub use types::{Dimension, ElementType, MapType, Shape, Size, TensorType, Type, ValueInfo};

use crate::error::{Error, Result};
use crate::model::{Inspection, IntoBytes, LoadOptions, Model, State};
use crate::onnx;
use crate::openvino;
use bytes::Bytes;
use std::io::Write;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

/// A model file as data that a program reads, changes and writes. Its fields are those of [`Content`].
///
/// ```
/// use onnxref::document::Document;
///
/// let path = "onnx-test-data/gather/onnx-1.12.0/node/test_gather_0/model.onnx";
/// let mut document = Document::read(path)?;
/// assert_eq!(document.graph.nodes[0].op_type, "Gather");
/// assert_eq!(document.to_bytes()?, std::fs::read(path).unwrap());
/// document.producer_name = "an example".to_string();
/// assert_eq!(document.load(&Default::default())?.metadata()[0].1, "an example");
/// # Ok::<(), onnxref::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Document {
    content: Part<Content>,
    /// The file that it was read from: its external data is beside it.
    path: Option<PathBuf>,
    /// How it was read, and how external data is.
    options: LoadOptions,
    state: State,
}

impl Document {
    /// A model of a graph, whose nodes use a version of `ai.onnx`. The version of the format is 10, or the first that has
    /// the opset.
    pub fn new(graph: Graph, opset: i64) -> Document {
        let opset_imports = vec![OpsetImport::new("", opset).into()];
        let ir_version = Some(convert::ir_version(opset).max(IR_VERSION));
        let content = Content { ir_version, graph: graph.into(), opset_imports, ..Content::default() };
        Document { content: content.into(), path: None, options: LoadOptions::default(), state: State::new() }
    }

    /// Reads an .onnx file, or the text form of one: a file whose name ends in `.onnxtxt`. External data is left where it is.
    ///
    /// # Errors
    /// The file can't be read, is not an .onnx file or its text, or exceeds a limit of loading.
    pub fn read(path: impl AsRef<Path>) -> Result<Document> {
        Document::read_with(path, &LoadOptions::default())
    }

    /// As [`Document::read`], with the limits of loading, and mapped if the options say so.
    ///
    /// # Errors
    /// As [`Document::read`].
    pub fn read_with(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Document> {
        let path = path.as_ref();
        if text::is_text(path) {
            return Document::read_text(path, options);
        }
        let file = options.read(path, &options.files(Some(path)))?;
        Document::decode(file, Some(path), options)
    }

    /// Reads the content of an .onnx file, or the text form of one.
    ///
    /// # Errors
    /// As [`Document::read`].
    pub fn from_bytes(bytes: impl IntoBytes) -> Result<Document> {
        Document::from_bytes_with(bytes, &LoadOptions::default())
    }

    /// As [`Document::from_bytes`], with the limits of loading.
    ///
    /// # Errors
    /// As [`Document::read`].
    pub fn from_bytes_with(bytes: impl IntoBytes, options: &LoadOptions) -> Result<Document> {
        let bytes = options.check(bytes.into_bytes())?;
        if text::is_text_content(&bytes) {
            return Document::from_text_with(text::utf8(&bytes)?, options);
        }
        Document::decode(bytes, None, options)
    }

    fn decode(file: Bytes, path: Option<&Path>, options: &LoadOptions) -> Result<Document> {
        if openvino::is_ir(&file) {
            return Err(Error::unsupported("it is an OpenVINO IR: only .onnx files can be read to be changed"));
        }
        if file.is_empty() {
            return Err(Error::model("the model file is empty"));
        }
        let files = options.files(path);
        files.budget.allow_for(file.len() as u64);
        files.budget.take(if options.maps() { 0 } else { file.len() as u64 })?;
        onnx::check_model(&file, &files)?;
        let content: Content = wire::read(&file, &files.budget)?;
        if !content.graph.is_unchanged() {
            return Err(Error::model("the model has no graph"));
        }
        let (path, options) = (path.map(Path::to_path_buf), options.clone());
        Ok(Document { content: Part::read(content, file), path, options, state: State::new() })
    }

    /// The file that it was read from.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether it is written as the bytes that it was read from.
    pub fn is_unchanged(&self) -> bool {
        self.content.is_unchanged()
    }

    /// Writes the model file, without its external data. What isn't changed is written as it was read. Pieces may be
    /// small, so `to` should have a buffer.
    ///
    /// # Errors
    /// The file would have 2 GiB or more, which protobuf can't hold; nothing is written then. `to` fails: its error is the
    /// [source](std::error::Error::source).
    pub fn write(&self, mut to: impl Write) -> Result<()> {
        match self.content.source() {
            Some(bytes) => {
                wire::write_pieces(bytes, &mut to).map_err(|error| Error::io("the model can't be written", error))
            }
            None => wire::write(&*self.content, &mut to),
        }
    }

    /// The model file, without its external data.
    ///
    /// # Errors
    /// As [`Document::write`].
    pub fn to_bytes(&self) -> Result<Bytes> {
        if let Some(bytes) = self.content.source() {
            return Ok(bytes.clone());
        }
        let mut bytes = Vec::new();
        let size = wire::size(&*self.content)?;
        let reserved = usize::try_from(size).is_ok_and(|size| bytes.try_reserve_exact(size).is_ok());
        if !reserved {
            return Err(Error::out_of_memory("the model", size));
        }
        self.write(&mut bytes)?;
        Ok(bytes.into())
    }

    /// Loads what would be written. External data is read beside the file that the document was read from.
    ///
    /// # Errors
    /// As [`Document::write`] and [`Model::load`].
    pub fn load(&self, options: &LoadOptions) -> Result<Model> {
        let path = self.path();
        options.parse(self.to_bytes()?, path, true, &options.files(path))
    }

    /// What would be written holds, and what is made of it: [`LoadOptions::inspect`].
    ///
    /// # Errors
    /// As [`Document::write`] and [`LoadOptions::inspect`].
    pub fn inspect(&self, options: &LoadOptions) -> Result<Inspection> {
        let path = self.path();
        let found = options.examine(self.to_bytes()?, path, true, &options.files(path))?;
        Ok(Inspection { state: Some(self.state), ..found })
    }

    /// Changes the content, if `change` returns true.
    fn change_if(&mut self, change: impl FnOnce(&mut Content) -> bool) -> bool {
        let changed = self.content.change_if(change);
        if changed {
            self.state = State::new();
        }
        changed
    }

    /// As [`Document::change_if`], of a change that may fail.
    fn try_change(&mut self, change: impl FnOnce(&mut Content) -> Result<bool>) -> Result<()> {
        if self.content.try_change(change)? {
            self.state = State::new();
        }
        Ok(())
    }

    /// Checks that an inspection is that of the document as it is. That of a file is taken as it is given.
    fn check_found(&self, found: &Inspection) -> Result<()> {
        match found.state {
            Some(state) if state != self.state => {
                Err(Error::input("the document was changed after its inspection: inspect it again"))
            }
            _ => Ok(()),
        }
    }
}

/// The least version of the format of new documents: the first that has all of opset 22 and before.
const IR_VERSION: i64 = 10;

impl Deref for Document {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.content
    }
}

impl DerefMut for Document {
    fn deref_mut(&mut self) -> &mut Content {
        self.state = State::new();
        &mut self.content
    }
}
