//! Models as text, in the syntax of `onnx.parser` and `onnx.printer`.

mod cursor;
mod notes;
mod print;
mod read;
mod values;
mod words;

use super::{Document, wire};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::files::ModelFiles;
use crate::model::{Inspection, IntoBytes, LoadOptions, Model};
use bytes::Bytes;
use cursor::Cursor;
use std::io::Write;
use std::path::Path;

/// Kinds of attributes, at their numbers.
const KINDS: [&str; 15] = [
    "undefined",
    "float",
    "int",
    "string",
    "tensor",
    "graph",
    "floats",
    "ints",
    "strings",
    "tensors",
    "graphs",
    "sparse_tensor",
    "sparse_tensors",
    "type_proto",
    "type_protos",
];

/// Types of types.
const WRAPPERS: [&str; 4] = ["seq", "optional", "map", "sparse_tensor"];

/// The number of an element type.
fn element_code(name: &str) -> Option<i32> {
    DType::from_name(name).map(DType::code)
}

/// Whether a file is in the text form: its name ends in `.onnxtxt`.
pub(super) fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("onnxtxt"))
}

impl Document {
    /// Reads the text form of a model: the syntax of `onnx.parser`.
    ///
    /// ```
    /// use onnxref::document::Document;
    ///
    /// let text = r#"<ir_version: 10, opset_import: ["" : 18]>
    ///     twice (float[2] x) => (float[2] y) <float two = {2}> { y = Mul (x, two) }"#;
    /// let document = Document::from_text(text)?;
    /// assert_eq!(document.graph.nodes[0].op_type, "Mul");
    /// assert_eq!(Document::from_text(&document.to_text()?)?.graph, document.graph);
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    ///
    /// # Errors
    /// The text doesn't match the syntax, or exceeds a limit of loading.
    pub fn from_text(text: &str) -> Result<Document> {
        Document::from_text_with(text, &LoadOptions::default())
    }

    /// As [`Document::from_text`], with the limits of loading.
    ///
    /// # Errors
    /// As [`Document::from_text`].
    pub fn from_text_with(text: &str, options: &LoadOptions) -> Result<Document> {
        Document::decode(encoded(text, &options.files(None))?, None, options)
    }

    /// Reads a file of the text form.
    pub(super) fn read_text(path: &Path, options: &LoadOptions) -> Result<Document> {
        let files = options.files(Some(path));
        let file = options.check(files.model(path, |_, _| Ok(()))?)?;
        Document::decode(encoded(utf8(&file)?, &files)?, Some(path), options)
    }

    /// The text form of the model: the syntax of `onnx.parser`. It has all elements of tensors. That syntax has no place for
    /// texts for people, metadata and quantization annotations inside of graphs: they are in comments that begin with `#:`,
    /// which are read again, as are the bits of NaNs that have a payload. Names of bodies and of tensors in attributes that aren't identifiers are not kept.
    ///
    /// # Errors
    /// The syntax can't express a part of the model, such as a sparse tensor, a denotation or a string that is not UTF-8. A tensor is
    /// not valid. The text has more bytes than [`Limits::file_bytes`](crate::Limits::file_bytes) of the options that the model
    /// was read with.
    pub fn to_text(&self) -> Result<String> {
        let mut text = Vec::new();
        self.write_text(&mut text)?;
        String::from_utf8(text).map_err(|_| Error::model("the text of the model is not UTF-8"))
    }

    /// Writes the text form of the model: [`Document::to_text`]. Pieces are small, so `to` should have a buffer.
    ///
    /// # Errors
    /// As [`Document::to_text`]; `to` fails: its error is the [source](std::error::Error::source).
    pub fn write_text(&self, mut to: impl Write) -> Result<()> {
        let most = self.options.files(None).limits.file_bytes;
        print::Printer::new(&mut to, most).model(self)
    }

    /// Writes the form of the model that the name of a file asks for: the text form if it ends in `.onnxtxt`.
    ///
    /// # Errors
    /// As [`Document::write`] and [`Document::write_text`].
    pub fn write_as(&self, path: impl AsRef<Path>, to: impl Write) -> Result<()> {
        if is_text(path.as_ref()) { self.write_text(to) } else { self.write(to) }
    }

    /// The document that a reader of [`Document::write_as`] has: that of the text, if it writes the text form.
    ///
    /// # Errors
    /// As [`Document::to_text`] and [`Document::from_text`].
    pub fn written_as(&self, path: impl AsRef<Path>) -> Result<Document> {
        if !is_text(path.as_ref()) {
            return Ok(self.clone());
        }
        Document::decode(encoded(&self.to_text()?, &self.options.files(None))?, self.path(), &self.options)
    }
}

/// The model file that a text describes.
fn encoded(text: &str, files: &ModelFiles) -> Result<Bytes> {
    files.budget.allow_for(text.len() as u64);
    let content = read::model(&mut Cursor::new(text, files))?;
    let size = wire::size(&content)?;
    files.budget.take(size)?;
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    wire::write(&content, &mut bytes)?;
    Ok(bytes.into())
}

/// Whether bytes are the text form of a model: after spaces and comments it begins with `<` and a field of a model. No other
/// format does.
pub(super) fn is_text_content(bytes: &[u8]) -> bool {
    let mut rest = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii_start();
    while let Some(comment) = rest.strip_prefix(b"#") {
        let end = comment.iter().position(|byte| *byte == b'\n').unwrap_or(comment.len());
        rest = comment.get(end..).unwrap_or(&[]).trim_ascii_start();
    }
    let header = rest.strip_prefix(b"<").map(<[u8]>::trim_ascii_start);
    header.is_some_and(|header| read::HEADER.iter().any(|key| header.starts_with(key.as_bytes())))
}

/// The text of the content of a file.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::model("the text of the model is not UTF-8"))
}

/// Models in the form that the name of their file says, or their content if there is none.
impl LoadOptions {
    /// As [`Model::from_bytes`], with these options.
    ///
    /// # Errors
    /// As [`Model::from_bytes`].
    pub fn from_bytes(&self, bytes: impl IntoBytes) -> Result<Model> {
        let bytes = self.check(bytes.into_bytes())?;
        if is_text_content(&bytes) {
            return Document::from_text_with(utf8(&bytes)?, self)?.load(self);
        }
        self.parse(bytes, None, true, &self.files(None))
    }

    /// As [`LoadOptions::inspect`], of the content of a model file.
    ///
    /// # Errors
    /// As [`LoadOptions::inspect`].
    pub fn inspect_bytes(&self, bytes: impl IntoBytes) -> Result<Inspection> {
        let bytes = self.check(bytes.into_bytes())?;
        if is_text_content(&bytes) {
            return of_file(Document::from_text_with(utf8(&bytes)?, self)?.inspect(self));
        }
        self.examine(bytes, None, true, &self.files(None))
    }

    /// As [`Model::load`], with these options.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        if is_text(path) { Document::read_text(path, self)?.load(self) } else { self.load_binary(path) }
    }

    /// Reads a model, and says what it holds and what was made of it, even if it can't run.
    ///
    /// # Errors
    /// The file can't be read, or is not a model at all. Other faults are in [`Inspection::error`].
    ///
    /// ```
    /// let path = "onnx-test-data/gather/onnx-1.12.0/node/test_gather_elements_0/model.onnx";
    /// let found = onnxref::Model::options().inspect(path)?;
    /// assert_eq!((found.graph.nodes.len(), found.graph.nodes[0].operator.as_str()), (1, "GatherElements"));
    /// assert!(found.error.is_none());
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn inspect(&self, path: impl AsRef<Path>) -> Result<Inspection> {
        let path = path.as_ref();
        if is_text(path) { of_file(Document::read_text(path, self)?.inspect(self)) } else { self.inspect_binary(path) }
    }
}

/// The inspection of a file: nobody has the document.
fn of_file(found: Result<Inspection>) -> Result<Inspection> {
    found.map(|found| Inspection { state: None, ..found })
}
