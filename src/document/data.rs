//! Elements of tensors in other files: external data.

use super::tensor::blame;
use super::{Document, External, Initializer, Node, Part};
use crate::dtype::DType;
use crate::error::{Error, Result, quote};
use crate::files::{ModelFiles, inside, is_link};
use crate::model::LoadOptions;
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where large tensors begin in a file of external data: at a page, so that the file can be mapped.
const PAGE: u64 = 4096;

/// Where small tensors begin.
const WORD: u64 = 64;

/// The content of a file of external data that is to be written beside a model: what [`Document::externalize`] moved.
#[derive(Debug)]
#[must_use]
pub struct DataFile {
    /// The file, relative to the folder of the model.
    pub location: String,
    parts: Vec<DataPart>,
    size: u64,
    path: Option<PathBuf>,
    options: LoadOptions,
}

/// Elements of a tensor.
#[derive(Debug)]
struct DataPart {
    offset: u64,
    from: From,
}

/// Where elements are read from.
#[derive(Debug)]
enum From {
    Memory(Bytes),
    /// Of a tensor of this name: a place, and the number of bytes.
    File(String, External, u64),
}

impl DataFile {
    /// The number of bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether no tensor has elements in the file: none was moved there.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The place of the file beside a model, whose own path may be behind links.
    ///
    /// # Errors
    /// A part of the location is a link: loading follows none, and the data would be outside of the model's folder.
    pub fn place(&self, model: impl AsRef<Path>) -> Result<PathBuf> {
        let model = model.as_ref();
        let place = model.with_file_name(&self.location);
        if is_link(model.parent().unwrap_or(model), Path::new(&self.location)) {
            let place = quote(&place.to_string_lossy());
            let why = "a link is in the way, and links to data are not followed";
            return Err(Error::input(format!("external data can't be written to {place}: {why}")));
        }
        Ok(place)
    }

    /// Writes the file, piece by piece.
    ///
    /// # Errors
    /// A file with elements can't be read, or `to` fails: its error is the [source](std::error::Error::source).
    pub fn write(&self, mut to: impl Write) -> Result<()> {
        let files = self.options.files(self.path.as_deref());
        let failed = |error| Error::io("the external data can't be written", error);
        let mut at = 0;
        for part in &self.parts {
            // Less than a page.
            let padding = vec![0; (part.offset - at) as usize];
            to.write_all(&padding).map_err(failed)?;
            at = part.offset;
            match &part.from {
                From::Memory(bytes) => {
                    super::wire::write_pieces(bytes, &mut to).map_err(failed)?;
                    at += bytes.len() as u64;
                }
                From::File(name, external, len) => {
                    let copied = files.copy(&external.location, external.offset, *len, &mut to);
                    copied.map_err(|error| blame(name, error))?;
                    at += len;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, len: u64, from: From) -> Result<External> {
        let offset = self.size.checked_next_multiple_of(if len < PAGE { WORD } else { PAGE });
        let place = offset.and_then(|offset| Some((offset, offset.checked_add(len)?)));
        let Some((offset, end)) = place else {
            return Err(Error::model("its elements and those before take more bytes than a file has"));
        };
        self.parts.push(DataPart { offset, from });
        self.size = end;
        Ok(External { location: self.location.clone(), offset, length: Some(len) })
    }
}

impl Document {
    /// The files with elements of tensors, relative to the folder of the model.
    ///
    /// # Errors
    /// A tensor doesn't say in a valid way where its elements are.
    pub fn external_files(&self) -> Result<BTreeSet<String>> {
        let mut all = BTreeSet::new();
        // A copy shares all bytes with the document.
        self.clone().change_tensors(&mut |tensor, _| {
            all.extend(tensor.external()?.map(|external| external.location));
            Ok(false)
        })?;
        Ok(all)
    }

    /// Whether a path is that of a file with elements of tensors.
    ///
    /// # Errors
    /// As [`Document::external_files`].
    pub fn has_data_in(&self, path: impl AsRef<Path>) -> Result<bool> {
        let (Some(model), Ok(path)) = (self.path(), path.as_ref().canonicalize()) else { return Ok(false) };
        let files = self.external_files()?;
        Ok(files.iter().any(|file| model.with_file_name(file).canonicalize().is_ok_and(|file| file == path)))
    }

    /// Moves elements of tensors to one file of external data: those of all initializers of at least `threshold` bytes,
    /// and all that are in other files already. The document can be loaded again once it and that file are written.
    ///
    /// # Errors
    /// The location leaves the folder of the model. A tensor is not valid.
    pub fn externalize(&mut self, location: &str, threshold: u64) -> Result<DataFile> {
        inside(location).map_err(|_| {
            Error::input(format!("external data at {}: a path inside the model's folder is needed", quote(location)))
        })?;
        let (path, options) = (self.path.clone(), self.options.clone());
        let mut file = DataFile { location: location.to_string(), parts: Vec::new(), size: 0, path, options };
        // Without a length, the same place may be that of tensors of several sizes.
        let mut moved: HashMap<(External, u64), External> = HashMap::new();
        self.change_tensors(&mut |tensor, is_initializer| {
            if let Some(old) = tensor.external()? {
                let len = tensor.external_len(&old)?;
                let new = match moved.get(&(old.clone(), len)) {
                    Some(new) => new.clone(),
                    None => {
                        let from = From::File(tensor.name.clone(), old.clone(), len);
                        file.add(len, from).map_err(|error| tensor.blame(error))?
                    }
                };
                tensor.set_external(&new);
                moved.insert((old, len), new);
                return Ok(true);
            }
            if !is_initializer || tensor.dtype() == Some(DType::String) || tensor.byte_len()? < threshold.max(1) {
                return Ok(false);
            }
            let raw = tensor.raw()?;
            let new = file.add(raw.len() as u64, From::Memory(raw)).map_err(|error| tensor.blame(error))?;
            tensor.set_external(&new);
            Ok(true)
        })?;
        // Its elements are no longer beside the file that was read.
        self.path = None;
        Ok(file)
    }

    /// Moves all elements of tensors from other files into the model file.
    ///
    /// # Errors
    /// A file can't be read, or a limit of loading is exceeded.
    pub fn embed(&mut self) -> Result<()> {
        let files: ModelFiles = self.options.files(self.path.as_deref());
        self.change_tensors(&mut |tensor, _| {
            let Some(external) = tensor.external()? else { return Ok(false) };
            let len = tensor.external_len(&external)?;
            let raw = files.part(&external.location, external.offset, len);
            tensor.set_raw(raw.map_err(|error| tensor.blame(error))?);
            Ok(true)
        })
    }

    /// Prepares the document for a place in another folder: moves external data to a file that has the name of the model
    /// and `.data`. Returns it, if there is external data and `path` is neither the file that was read nor in its folder.
    ///
    /// # Errors
    /// A tensor is not valid.
    pub fn relocate(&mut self, path: &Path) -> Result<Option<DataFile>> {
        let folder =
            |path: &Path| path.parent().filter(|p| *p != Path::new("")).unwrap_or(Path::new(".")).canonicalize();
        let same =
            |a: std::io::Result<PathBuf>, b: std::io::Result<PathBuf>| matches!((a, b), (Ok(a), Ok(b)) if a == b);
        // A link leads to the model in another folder, and its data is beside the link.
        let is_own = |own: &Path| same(own.canonicalize(), path.canonicalize());
        let stays = self.path().is_none_or(|own| is_own(own) || same(folder(own), folder(path)));
        if stays || self.external_files()?.is_empty() {
            return Ok(None);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.externalize(&format!("{name}.data"), u64::MAX).map(Some)
    }

    /// Calls `change` with each tensor, and whether it is an initializer. It returns whether it has changed it.
    fn change_tensors(&mut self, change: &mut Change<'_>) -> Result<()> {
        self.try_change(|content| {
            let mut changed = content.graph.try_change(|graph| graph_tensors(graph, change))?;
            for function in &mut content.functions {
                changed |= function.try_change(|function| nodes_tensors(&mut function.nodes, change))?;
            }
            Ok(changed)
        })
    }
}

/// Changes a tensor.
type Change<'a> = dyn FnMut(&mut Initializer, bool) -> Result<bool> + 'a;

fn graph_tensors(graph: &mut super::Graph, change: &mut Change<'_>) -> Result<bool> {
    let mut changed = false;
    for tensor in &mut graph.initializers {
        changed |= tensor.try_change(|tensor| change(tensor, true))?;
    }
    for sparse in &mut graph.sparse_initializers {
        changed |= sparse.try_change(|sparse| {
            let mut changed = false;
            for tensor in sparse.values.iter_mut().chain(&mut sparse.indices) {
                changed |= tensor.try_change(|tensor| change(tensor, false))?;
            }
            Ok(changed)
        })?;
    }
    Ok(nodes_tensors(&mut graph.nodes, change)? | changed)
}

fn nodes_tensors(nodes: &mut [Part<Node>], change: &mut Change<'_>) -> Result<bool> {
    let mut changed = false;
    for node in nodes {
        changed |= node.try_change(|node| {
            let mut changed = false;
            for attribute in &mut node.attributes {
                changed |= attribute.try_change(|attribute| {
                    let mut changed = false;
                    for tensor in attribute.tensors_mut() {
                        changed |= tensor.try_change(|tensor| change(tensor, false))?;
                    }
                    for graph in attribute.graphs_mut() {
                        changed |= graph.try_change(|graph| graph_tensors(graph, change))?;
                    }
                    Ok(changed)
                })?;
            }
            Ok(changed)
        })?;
    }
    Ok(changed)
}
