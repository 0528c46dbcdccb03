//! Notes: comments that begin with `#:`. They have what the syntax of `onnx.parser` has no place for, which skips them.

use super::cursor::Cursor;
use super::print::Printer;
use super::read;
use super::words::{name, string};
use crate::document::{Annotation, Entry, Graph, Node, Part, ValueInfo};
use crate::error::{Result, quote};
use std::collections::HashMap;

/// Texts for people, and metadata.
type Texts<'a> = (&'a mut String, &'a mut Vec<Part<Entry>>);

impl Printer<'_> {
    /// A line for what a part has beside its syntax, if it has anything.
    fn note(&mut self, what: &str, of: &str, doc: &str, metadata: &[Part<Entry>]) -> Result<()> {
        if doc.is_empty() && metadata.is_empty() {
            return Ok(());
        }
        self.line(1)?;
        self.put(format_args!("#: {what}"))?;
        if !of.is_empty() {
            self.put(format_args!(" {}", one_line(&name(of))))?;
        }
        if !doc.is_empty() {
            self.put(format_args!(" doc_string: {}", one_line(&string(doc))))?;
        }
        if !metadata.is_empty() {
            self.put(" metadata_props: ")?;
            self.note_entries(metadata)?;
        }
        Ok(())
    }

    fn note_entries(&mut self, entries: &[Part<Entry>]) -> Result<()> {
        self.put("[")?;
        self.list(entries, |own, entry| {
            own.put(format_args!("{}: {}", one_line(&string(&entry.key)), one_line(&string(&entry.value))))
        })?;
        self.put("]")
    }

    pub(super) fn graph_notes(&mut self, graph: &Graph) -> Result<()> {
        self.note("graph", "", &graph.doc, &graph.metadata)?;
        graph.inputs.iter().try_for_each(|info| self.note("input", &info.name, &info.doc, &info.metadata))?;
        graph.outputs.iter().try_for_each(|info| self.note("output", &info.name, &info.doc, &info.metadata))?;
        self.value_notes(&graph.value_info)?;
        for tensor in &graph.initializers {
            self.note("initializer", &tensor.name, &tensor.doc, &tensor.metadata)?;
        }
        for annotation in &graph.quantization_annotations {
            self.line(1)?;
            self.put(format_args!("#: quantization {} ", one_line(&name(&annotation.tensor_name))))?;
            self.note_entries(&annotation.parameters)?;
        }
        Ok(())
    }

    pub(super) fn value_notes(&mut self, list: &[Part<ValueInfo>]) -> Result<()> {
        list.iter().try_for_each(|info| self.note("value", &info.name, &info.doc, &info.metadata))
    }

    pub(super) fn node_notes(&mut self, node: &Node) -> Result<()> {
        self.note("node", "", &node.doc, &node.metadata)?;
        node.attributes.iter().try_for_each(|attribute| self.note("attribute", &attribute.name, &attribute.doc, &[]))
    }
}

/// A quoted string with escapes in the place of what ends a line.
fn one_line(quoted: &str) -> String {
    quoted.replace('\n', "\\n").replace('\r', "\\r")
}

/// The notes before the nodes of a graph.
pub(super) fn graph(from: &mut Cursor<'_>, graph: &mut Graph) -> Result<()> {
    let [mut initializers, mut inputs, mut outputs, mut values]: [Places; 4] = Default::default();
    each(from, &mut |from, what, name| {
        let of = match what {
            "graph" => Some((&mut graph.doc, &mut graph.metadata)),
            "quantization" => {
                from.take(size_of::<Annotation>())?;
                let parameters = read::entries(from)?;
                let annotation = Annotation { tensor_name: name, parameters, ..Annotation::default() };
                graph.quantization_annotations.push(annotation.into());
                return Ok(());
            }
            "initializer" => {
                let at = initializers.find(from, graph.initializers.iter().map(|tensor| &*tensor.name), &name)?;
                let tensor = at.and_then(|at| graph.initializers.get_mut(at)).map(|tensor| &mut **tensor);
                tensor.map(|tensor| (&mut tensor.doc, &mut tensor.metadata))
            }
            "input" => inputs.texts(from, &mut graph.inputs, &name)?,
            "output" => outputs.texts(from, &mut graph.outputs, &name)?,
            "value" => values.texts(from, &mut graph.value_info, &name)?,
            _ => return Err(from.error("expected graph, input, output, value, initializer or quantization")),
        };
        add(from, what, &name, of)
    })
}

/// The notes before the nodes of a function.
pub(super) fn values(from: &mut Cursor<'_>, list: &mut [Part<ValueInfo>]) -> Result<()> {
    let mut places = Places::default();
    each(from, &mut |from, what, name| {
        let of = if what == "value" { places.texts(from, list, &name)? } else { None };
        add(from, what, &name, of)
    })
}

/// Adds the notes that were before a node.
pub(super) fn node(found: Vec<Cursor<'_>>, node: &mut Node) -> Result<()> {
    let mut places = Places::default();
    for mut from in found {
        let from = &mut from;
        if from.accept("node") {
            texts(from, (&mut node.doc, &mut node.metadata))?;
            continue;
        }
        from.expect("attribute")?;
        let name = from.name("the name of an attribute")?;
        let at = places.find(from, node.attributes.iter().map(|own| &*own.name), &name)?;
        let Some(attribute) = at.and_then(|at| node.attributes.get_mut(at)) else {
            return Err(from.error(&format!("the node has no attribute {}", quote(&name))));
        };
        texts(from, (&mut attribute.doc, &mut Vec::new()))?;
    }
    Ok(())
}

/// Adds what a note says to the part that it is for.
fn add(from: &mut Cursor<'_>, what: &str, name: &str, of: Option<Texts<'_>>) -> Result<()> {
    match of {
        Some(of) => texts(from, of),
        None => Err(from.error(&format!("there is no {what} {}", quote(name)))),
    }
}

/// The first places of names in a list, from the first note that needs them on.
#[derive(Default)]
struct Places(Option<HashMap<String, usize>>);

impl Places {
    fn find<'n>(
        &mut self,
        from: &Cursor<'_>,
        names: impl Iterator<Item = &'n str>,
        name: &str,
    ) -> Result<Option<usize>> {
        let known = match &mut self.0 {
            Some(known) => known,
            None => {
                let mut known = HashMap::new();
                for (at, name) in names.enumerate() {
                    from.take(2 * size_of::<(String, usize)>() + name.len())?;
                    known.entry(name.to_string()).or_insert(at);
                }
                self.0.insert(known)
            }
        };
        Ok(known.get(name).copied())
    }

    fn texts<'l>(
        &mut self,
        from: &Cursor<'_>,
        list: &'l mut [Part<ValueInfo>],
        name: &str,
    ) -> Result<Option<Texts<'l>>> {
        let at = self.find(from, list.iter().map(|info| &*info.name), name)?;
        let info = at.and_then(|at| list.get_mut(at)).map(|info| &mut **info);
        Ok(info.map(|info| (&mut info.doc, &mut info.metadata)))
    }
}

/// Whether a note is for a node.
fn is_of_node(from: &mut Cursor<'_>) -> bool {
    from.sees("node") || from.sees("attribute")
}

/// The notes for the node that comes next.
pub(super) fn of_node<'a>(from: &mut Cursor<'a>) -> Result<Vec<Cursor<'a>>> {
    let mut notes = from.notes()?;
    notes.retain_mut(is_of_node);
    Ok(notes)
}

fn each(from: &mut Cursor<'_>, read: &mut dyn FnMut(&mut Cursor<'_>, &str, String) -> Result<()>) -> Result<()> {
    for mut note in from.notes()? {
        if !is_of_node(&mut note) {
            let what = note.word("what the note is for")?;
            let name = if what == "graph" { String::new() } else { note.name("a name")? };
            read(&mut note, what, name)?;
        }
    }
    Ok(())
}

/// `doc_string: ".." metadata_props: [..]`
fn texts(from: &mut Cursor<'_>, (doc, metadata): Texts<'_>) -> Result<()> {
    if from.accept("doc_string") {
        from.expect(":")?;
        *doc = from.string()?;
    }
    if from.accept("metadata_props") {
        from.expect(":")?;
        *metadata = read::entries(from)?;
    }
    if from.next().is_empty() {
        Ok(())
    } else {
        Err(from.expected("doc_string, metadata_props or the end of the line"))
    }
}
