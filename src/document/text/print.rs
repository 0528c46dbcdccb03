//! Models as text.

use super::KINDS;
use super::words::{element, float, identifier, inexpressible, is_identifier, known, name, string};
use crate::document::{
    Attribute, AttributeValue as V, Content, Entry, Function, Graph, Initializer, Node, OpsetImport, Part, Size,
    TensorType, Type, ValueInfo,
};
use crate::dtype::DType;
use crate::error::{Error, Result, quote};
use crate::limits::exceeded;
use std::fmt::Display;
use std::io::{self, Write};

/// How deep graphs nest at most.
const NESTING: usize = 33;

/// Writes a model.
pub(super) struct Printer<'a> {
    to: &'a mut dyn Write,
    depth: usize,
    /// Bytes so far, and the most that there may be.
    bytes: u64,
    most: u64,
}

impl<'a> Printer<'a> {
    pub(super) fn new(to: &'a mut dyn Write, most: u64) -> Printer<'a> {
        Printer { to, depth: 0, bytes: 0, most }
    }

    pub(super) fn put(&mut self, text: impl Display) -> Result<()> {
        let written = write!(self, "{text}");
        // Whoever reads the text has the same limit.
        if self.bytes > self.most {
            return Err(exceeded("file_bytes", "the text of the model has", self.bytes.into(), "bytes", self.most));
        }
        written.map_err(|error| Error::io("the model can't be written", error))
    }

    /// A new line.
    pub(super) fn line(&mut self, more: usize) -> Result<()> {
        let spaces = (self.depth.saturating_sub(1) + more) * 3;
        self.put(format_args!("\n{:spaces$}", ""))
    }

    /// Items with commas between them.
    pub(super) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut item: impl FnMut(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        for (k, one) in items.into_iter().enumerate() {
            if k > 0 {
                self.put(", ")?;
            }
            item(self, one)?;
        }
        Ok(())
    }

    pub(super) fn model(&mut self, model: &Content) -> Result<()> {
        known(&model.other, "the model")?;
        self.put(format_args!("<\n   ir_version: {}", model.ir_version.unwrap_or(0)))?;
        self.put(",\n   opset_import: [")?;
        self.opsets(&model.opset_imports)?;
        self.put("]")?;
        self.text("producer_name", &model.producer_name)?;
        self.text("producer_version", &model.producer_version)?;
        self.text("domain", &model.domain)?;
        if let Some(version) = model.model_version {
            self.put(format_args!(",\n   model_version: {version}"))?;
        }
        self.text("doc_string", &model.doc)?;
        self.metadata(&model.metadata)?;
        self.put("\n>\n")?;
        let name = name(&model.graph.name);
        self.graph(&model.graph, &name)?;
        model.functions.iter().try_for_each(|function| self.function(function))?;
        self.put("\n")
    }

    /// A field of a header, unless it is empty.
    fn text(&mut self, key: &str, text: &str) -> Result<()> {
        if text.is_empty() { Ok(()) } else { self.put(format_args!(",\n   {key}: {}", string(text))) }
    }

    fn metadata(&mut self, entries: &[Part<Entry>]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        self.put(",\n   metadata_props: ")?;
        self.entries(entries)
    }

    fn opsets(&mut self, opsets: &[Part<OpsetImport>]) -> Result<()> {
        self.list(opsets, |own, opset| {
            own.put(format_args!("{} : {}", string(&opset.domain), opset.version.unwrap_or(0)))
        })
    }

    fn entries(&mut self, entries: &[Part<Entry>]) -> Result<()> {
        self.put("[")?;
        self.list(entries, |own, entry| own.put(format_args!("{}: {}", string(&entry.key), string(&entry.value))))?;
        self.put("]")
    }

    fn graph(&mut self, graph: &Graph, name: &str) -> Result<()> {
        known(&graph.other, "a graph")?;
        if !graph.sparse_initializers.is_empty() {
            return Err(inexpressible("sparse initializers"));
        }
        self.depth += 1;
        if self.depth > NESTING {
            return Err(inexpressible(&format!("graphs that nest more than {NESTING} deep")));
        }
        self.put(format_args!("{name} ("))?;
        self.list(&graph.inputs, |own, info| own.value(info))?;
        self.put(") => (")?;
        self.list(&graph.outputs, |own, info| own.value(info))?;
        self.put(")")?;
        if !graph.initializers.is_empty() || !graph.value_info.is_empty() {
            self.line(1)?;
            self.put("<")?;
            self.list(&graph.initializers, |own, tensor| {
                let value_name = self::name(&tensor.name);
                own.tensor(tensor, &format!(" {value_name} = ")).map_err(|error| tensor.blame(error))
            })?;
            if !graph.initializers.is_empty() && !graph.value_info.is_empty() {
                self.put(", ")?;
            }
            self.list(&graph.value_info, |own, info| own.value(info))?;
            self.put(">")?;
            self.line(0)?;
            self.put("{")?;
        } else {
            self.put(" {")?;
        }
        self.graph_notes(graph)?;
        graph.nodes.iter().try_for_each(|node| self.node(node))?;
        self.line(0)?;
        self.depth -= 1;
        self.put("}")
    }

    fn function(&mut self, function: &Function) -> Result<()> {
        known(&function.other, "a function")?;
        self.put(format_args!("\n<\n   domain: {},\n   opset_import: [", string(&function.domain)))?;
        self.opsets(&function.opset_imports)?;
        self.put("]")?;
        self.text("overload", &function.overload)?;
        self.text("doc_string", &function.doc)?;
        self.metadata(&function.metadata)?;
        self.put(format_args!("\n>\n{}", name(&function.name)))?;
        self.depth += 1;
        if !function.attributes.is_empty() || !function.defaults.is_empty() {
            self.put(" <")?;
            self.list(&function.attributes, |own, text| own.put(name(text)))?;
            if !function.attributes.is_empty() && !function.defaults.is_empty() {
                self.put(", ")?;
            }
            self.list(&function.defaults, |own, default| own.attribute(default))?;
            self.put(">")?;
        }
        self.put(" (")?;
        self.list(&function.inputs, |own, text| own.put(name(text)))?;
        self.put(") => (")?;
        self.list(&function.outputs, |own, text| own.put(name(text)))?;
        self.put(")")?;
        if !function.value_info.is_empty() {
            self.put("\n   <")?;
            self.list(&function.value_info, |own, info| own.value(info))?;
            self.put(">")?;
        }
        self.put("\n{")?;
        self.value_notes(&function.value_info)?;
        function.nodes.iter().try_for_each(|node| self.node(node))?;
        self.depth -= 1;
        self.put("\n}")
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        known(&node.other, "a node")?;
        self.node_notes(node)?;
        self.line(1)?;
        if !node.name.is_empty() {
            self.put(format_args!("[{}] ", name(&node.name)))?;
        }
        self.list(&node.outputs, |own, text| own.put(name(text)))?;
        self.put(" = ")?;
        if !node.domain.is_empty() {
            let parts: Vec<String> = node.domain.split('.').map(name).collect();
            self.put(format_args!("{}.", parts.join(".")))?;
        }
        self.put(name(&node.op_type))?;
        if !node.overload.is_empty() {
            self.put(format_args!(":{}", name(&node.overload)))?;
        }
        // Bodies come after the inputs.
        let late = node.bodies().next().is_some();
        if !late {
            self.attributes(node)?;
        }
        self.put(" (")?;
        self.list(&node.inputs, |own, text| own.put(name(text)))?;
        self.put(")")?;
        if late { self.attributes(node) } else { Ok(()) }
    }

    fn attributes(&mut self, node: &Node) -> Result<()> {
        if node.attributes.is_empty() {
            return Ok(());
        }
        self.put(" <")?;
        self.depth += 1;
        self.list(&node.attributes, |own, attribute| own.attribute(attribute))?;
        self.depth -= 1;
        self.put(">")
    }

    fn attribute(&mut self, attribute: &Attribute) -> Result<()> {
        let kind = usize::try_from(attribute.value.kind()).ok().and_then(|kind| KINDS.get(kind));
        let kind = kind.ok_or_else(|| inexpressible("an attribute of an unknown kind"))?;
        self.put(format_args!("{}: {kind} = ", name(&attribute.name)))?;
        match &attribute.value {
            V::Missing => Err(inexpressible(&format!("the attribute {}, which has no value", quote(&attribute.name)))),
            V::Reference(outer, _) => self.put(format_args!("@{}", name(outer))),
            V::Float(value) => self.put(float(*value)),
            V::Int(value) => self.put(value),
            V::String(value) => self.bytes(value),
            V::Tensor(value) => self.nameless(value),
            V::Graph(value) => self.graph(value, &identifier(&value.name)),
            V::Type(value) => self.value_type(value),
            V::SparseTensor(_) | V::SparseTensors(_) => Err(inexpressible("sparse tensors")),
            V::Floats(values) => self.bracketed(values, |own, value| own.put(float(*value))),
            V::Ints(values) => self.bracketed(values, |own, value| own.put(value)),
            V::Strings(values) => self.bracketed(values, |own, value| own.bytes(value)),
            V::Tensors(values) => self.bracketed(values, |own, value| own.nameless(value)),
            V::Graphs(values) => self.bracketed(values, |own, value| own.graph(value, &identifier(&value.name))),
            V::Types(values) => self.bracketed(values, |own, value| own.value_type(value)),
        }
    }

    fn bracketed<T>(&mut self, items: &[T], item: impl FnMut(&mut Self, &T) -> Result<()>) -> Result<()> {
        self.put("[")?;
        self.list(items, item)?;
        self.put("]")
    }

    fn bytes(&mut self, text: &[u8]) -> Result<()> {
        let text = std::str::from_utf8(text).map_err(|_| inexpressible("a string that is not UTF-8"))?;
        self.put(string(text))
    }

    /// A tensor in an attribute: its name matters to nobody, and is left out unless it is an identifier.
    fn nameless(&mut self, tensor: &Initializer) -> Result<()> {
        if !tensor.doc.is_empty() || !tensor.metadata.is_empty() {
            return Err(inexpressible("texts and metadata of a tensor in an attribute"));
        }
        let own = if is_identifier(&tensor.name) { format!(" {} ", tensor.name) } else { " ".to_string() };
        let sign = if tensor.data_location == 1 { "= " } else { "" };
        self.tensor(tensor, &format!("{own}{sign}")).map_err(|error| tensor.blame(error))
    }

    /// The type, what is between, and the elements.
    fn tensor(&mut self, tensor: &Initializer, between: &str) -> Result<()> {
        let dtype = tensor.dtype().ok_or_else(|| Error::model("its element type is not valid"))?;
        self.put(dtype.name())?;
        if !tensor.dims.is_empty() {
            self.put("[")?;
            self.list(&tensor.dims, |own, dim| own.put(dim))?;
            self.put("]")?;
        }
        self.put(between)?;
        if tensor.data_location == 1 {
            return self.entries(&tensor.external_data);
        }
        self.put("{")?;
        self.elements(tensor, dtype)?;
        self.put("}")
    }

    fn elements(&mut self, tensor: &Initializer, dtype: DType) -> Result<()> {
        use DType as D;
        if dtype == D::String {
            let tensor = tensor.tensor()?;
            return self.list(tensor.strings()?, |own, text| own.put(string(text)));
        }
        // Those of 6 bits one by one: as many packed bytes could be as many elements.
        let raw = if dtype.bits() == 6 { tensor.tensor()?.bytes().to_vec().into() } else { tensor.raw()? };
        if dtype.bits() != 6 && raw.len() as u64 != tensor.byte_len()? {
            return Err(Error::model(format!("it has {} bytes: its type needs {}", raw.len(), tensor.byte_len()?)));
        }
        macro_rules! each {
            ($type:ty, $text:expr) => {
                self.list(raw.as_chunks::<{ size_of::<$type>() }>().0, |own, bytes| {
                    own.put($text(<$type>::from_le_bytes(*bytes)))
                })
            };
        }
        let same = |text| text;
        match dtype {
            D::Float | D::Complex64 => each!(f32, float),
            D::Double | D::Complex128 => each!(f64, float),
            D::Int8 => each!(i8, |value| value),
            D::Int16 => each!(i16, |value| value),
            D::Int32 => each!(i32, |value| value),
            D::Int64 => each!(i64, |value| value),
            D::Uint16 | D::Float16 | D::Bfloat16 => each!(u16, |value| value),
            D::Uint32 => each!(u32, |value| value),
            D::Uint64 => each!(u64, |value| value),
            _ => each!(u8, same),
        }
    }

    fn value(&mut self, info: &ValueInfo) -> Result<()> {
        let declared = info.value_type.as_deref().filter(|declared| ***declared != Type::default());
        if let Some(declared) = declared {
            self.value_type(declared)?;
            self.put(" ")?;
        }
        self.put(name(&info.name))
    }

    /// Types of a file nest as deeply as its messages.
    fn value_type(&mut self, declared: &Type) -> Result<()> {
        self.depth += 1;
        if self.depth > NESTING * 2 {
            return Err(inexpressible(&format!("types that nest more than {NESTING} deep")));
        }
        if !declared.denotation.is_empty() {
            return Err(inexpressible("the denotation of a type"));
        }
        if let Some(tensor) = &declared.tensor {
            self.tensor_type(tensor)?;
        } else if let Some(tensor) = &declared.sparse_tensor {
            self.put("sparse_tensor(")?;
            self.tensor_type(tensor)?;
            self.put(")")?;
        } else if let Some(map) = &declared.map {
            self.put(format_args!("map({}, ", element(map.key_type)?))?;
            self.value_type(inner_type(&map.value_type)?)?;
            self.put(")")?;
        } else if let Some(sequence) = &declared.sequence {
            self.put("seq(")?;
            self.value_type(inner_type(&sequence.elem_type)?)?;
            self.put(")")?;
        } else if let Some(optional) = &declared.optional {
            self.put("optional(")?;
            self.value_type(inner_type(&optional.elem_type)?)?;
            self.put(")")?;
        } else {
            return Err(inexpressible("a type of an unknown kind"));
        }
        self.depth -= 1;
        Ok(())
    }

    fn tensor_type(&mut self, tensor: &TensorType) -> Result<()> {
        self.put(element(tensor.elem_type)?)?;
        let Some(shape) = &tensor.shape else { return self.put("[]") };
        if shape.dims.is_empty() {
            return Ok(());
        }
        self.put("[")?;
        if shape.dims.iter().any(|dim| !dim.denotation.is_empty()) {
            return Err(inexpressible("the denotation of a dimension"));
        }
        self.list(&shape.dims, |own, dim| match &dim.size {
            Size::Fixed(size) => own.put(size),
            Size::Symbol(symbol) if !symbol.is_empty() => own.put(name(symbol)),
            Size::Symbol(_) | Size::Unknown => own.put("?"),
        })?;
        self.put("]")
    }
}

/// Bytes beyond the limit are counted, and not written.
impl Write for Printer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes > self.most { Ok(bytes.len()) } else { self.to.write_all(bytes).map(|()| bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The type in a type.
fn inner_type(inner: &Option<Box<Part<Type>>>) -> Result<&Type> {
    inner.as_deref().map(|inner| &**inner).ok_or_else(|| inexpressible("a type whose inner type is missing"))
}
