//! Models, graphs, nodes and functions from text.

use super::cursor::Cursor;
use crate::document::{
    Attribute, Content, ElementType, Entry, Function, Graph, MapType, Node, OpsetImport, Part, Shape, Size, TensorType,
    Type, ValueInfo,
};
use crate::error::Result;

/// Fields of a model that are before its graph.
pub(super) const HEADER: [&str; 8] = [
    "ir_version",
    "opset_import",
    "producer_name",
    "producer_version",
    "domain",
    "model_version",
    "doc_string",
    "metadata_props",
];

/// `<ir_version: 10, ..> graph functions`
pub(super) fn model(from: &mut Cursor<'_>) -> Result<Content> {
    let mut model = Content::default();
    if from.accept("<") {
        from.list(">", |from| {
            let key = from.peek();
            if !HEADER.contains(&key) {
                return Err(from.expected("a field of the model"));
            }
            from.expect(key)?;
            from.expect(":")?;
            match key {
                "ir_version" => model.ir_version = Some(from.parse("an integer")?),
                "model_version" => model.model_version = Some(from.parse("an integer")?),
                "opset_import" => model.opset_imports = opsets(from)?,
                "producer_name" => model.producer_name = from.string()?,
                "producer_version" => model.producer_version = from.string()?,
                "domain" => model.domain = from.string()?,
                "doc_string" => model.doc = from.string()?,
                _ => model.metadata = entries(from)?,
            }
            Ok(())
        })?;
    }
    model.graph = graph(from)?.into();
    while !from.next().is_empty() {
        from.take(2 * size_of::<Part<Function>>())?;
        model.functions.push(function(from)?.into());
    }
    Ok(model)
}

fn opsets(from: &mut Cursor<'_>) -> Result<Vec<Part<OpsetImport>>> {
    let mut all = Vec::new();
    from.expect("[")?;
    from.list("]", |from| {
        from.take(2 * size_of::<Part<OpsetImport>>())?;
        let domain = from.string()?;
        from.expect(":")?;
        all.push(OpsetImport::new(domain, from.parse("an integer")?).into());
        Ok(())
    })?;
    Ok(all)
}

/// `["key": "value", ..]`
pub(super) fn entries(from: &mut Cursor<'_>) -> Result<Vec<Part<Entry>>> {
    let mut all = Vec::new();
    from.expect("[")?;
    from.list("]", |from| {
        from.take(2 * size_of::<Part<Entry>>())?;
        let key = from.string()?;
        from.expect(":")?;
        all.push(Entry::new(key, from.string()?).into());
        Ok(())
    })?;
    Ok(all)
}

/// `name (inputs) => (outputs) <values> { nodes }`
pub(super) fn graph(from: &mut Cursor<'_>) -> Result<Graph> {
    from.deeper(|from| {
        let mut graph = Graph::new(from.name("the name of a graph")?);
        from.expect("(")?;
        from.list(")", |from| {
            let info = value(from)?;
            if from.accept("=") {
                graph.initializers.push(super::values::initializer(from, &info)?.into());
            }
            graph.inputs.push(info.into());
            Ok(())
        })?;
        from.expect("=>")?;
        from.expect("(")?;
        from.list(")", |from| {
            graph.outputs.push(value(from)?.into());
            Ok(())
        })?;
        if from.accept("<") {
            from.list(">", |from| {
                let info = value(from)?;
                if from.accept("=") {
                    graph.initializers.push(super::values::initializer(from, &info)?.into());
                } else {
                    graph.value_info.push(info.into());
                }
                Ok(())
            })?;
        }
        from.expect("{")?;
        super::notes::graph(from, &mut graph)?;
        graph.nodes = nodes(from)?;
        Ok(graph)
    })
}

/// `<domain: "d", ..> name <attributes> (inputs) => (outputs) <types> { nodes }`
fn function(from: &mut Cursor<'_>) -> Result<Function> {
    let mut function = Function::default();
    if from.accept("<") {
        from.list(">", |from| {
            let key = from.peek();
            if !["domain", "opset_import", "doc_string", "overload", "metadata_props"].contains(&key) {
                return Err(from.expected("a field of the function"));
            }
            from.expect(key)?;
            from.expect(":")?;
            match key {
                "domain" => function.domain = from.string()?,
                "opset_import" => function.opset_imports = opsets(from)?,
                "doc_string" => function.doc = from.string()?,
                "overload" => function.overload = from.string()?,
                _ => function.metadata = entries(from)?,
            }
            Ok(())
        })?;
    }
    function.name = from.name("the name of a function")?;
    if from.accept("<") {
        from.list(">", |from| {
            let name = from.name("the name of an attribute")?;
            if from.sees(":") || from.sees("=") {
                from.take(2 * size_of::<Part<Attribute>>())?;
                function.defaults.push(super::values::attribute(from, name)?.into());
            } else {
                function.attributes.push(name);
            }
            Ok(())
        })?;
    }
    from.expect("(")?;
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    from.list(")", |from| formal(from, &mut inputs, &mut function))?;
    from.expect("=>")?;
    from.expect("(")?;
    from.list(")", |from| formal(from, &mut outputs, &mut function))?;
    (function.inputs, function.outputs) = (inputs, outputs);
    if from.accept("<") {
        from.list(">", |from| {
            function.value_info.push(value(from)?.into());
            Ok(())
        })?;
    }
    from.expect("{")?;
    super::notes::values(from, &mut function.value_info)?;
    function.nodes = nodes(from)?;
    Ok(function)
}

/// An input or output of a function, which may have a type.
fn formal(from: &mut Cursor<'_>, names: &mut Vec<String>, function: &mut Function) -> Result<()> {
    let info = value(from)?;
    names.push(info.name.clone());
    if info.value_type.is_some() {
        function.value_info.push(info.into());
    }
    Ok(())
}

/// Nodes up to `}`.
fn nodes(from: &mut Cursor<'_>) -> Result<Vec<Part<Node>>> {
    let mut nodes = Vec::new();
    while !from.accept("}") {
        from.take(2 * size_of::<Part<Node>>())?;
        let notes = super::notes::of_node(from)?;
        let mut node = node(from)?;
        super::notes::node(notes, &mut node)?;
        nodes.push(node.into());
    }
    Ok(nodes)
}

/// `[name] outputs = domain.Operator:overload <attributes> (inputs)`
fn node(from: &mut Cursor<'_>) -> Result<Node> {
    let mut node = Node::default();
    if from.accept("[") {
        node.name = if from.sees("]") { String::new() } else { from.name("the name of a node")? };
        from.expect("]")?;
    }
    node.outputs = names(from)?;
    from.expect("=")?;
    let mut path = Vec::new();
    from.accept(".");
    loop {
        path.push(from.name("an operator")?);
        if !from.accept(".") {
            break;
        }
    }
    node.op_type = path.pop().unwrap_or_default();
    node.domain = path.join(".");
    if from.accept(":") {
        node.overload = from.name("the overload of a function")?;
    }
    attributes(from, &mut node)?;
    from.expect("(")?;
    node.inputs = names(from)?;
    from.expect(")")?;
    if node.attributes.is_empty() {
        attributes(from, &mut node)?;
    }
    Ok(node)
}

/// Names with commas between them; without one, the value is omitted.
fn names(from: &mut Cursor<'_>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    loop {
        from.take(2 * size_of::<String>())?;
        let name = if from.sees_name() { Some(from.name("a name")?) } else { None };
        if from.accept(",") {
            names.push(name.unwrap_or_default());
            continue;
        }
        names.extend(name);
        return Ok(names);
    }
}

fn attributes(from: &mut Cursor<'_>, node: &mut Node) -> Result<()> {
    if !from.accept("<") {
        return Ok(());
    }
    loop {
        from.take(2 * size_of::<Part<Attribute>>())?;
        let name = from.name("the name of an attribute")?;
        node.attributes.push(super::values::attribute(from, name)?.into());
        if from.accept(">") {
            return Ok(());
        }
        if !from.accept(",") {
            return Err(from.expected("`,` or `>`"));
        }
    }
}

/// A name, after its type if that is declared.
fn value(from: &mut Cursor<'_>) -> Result<ValueInfo> {
    from.take(2 * size_of::<Part<ValueInfo>>())?;
    let value_type = if sees_type(from) { Some(Box::new(value_type(from)?.into())) } else { None };
    let name = from.name("the name of a value")?;
    Ok(ValueInfo { name, value_type, ..ValueInfo::default() })
}

/// Whether a type comes next.
pub(super) fn sees_type(from: &mut Cursor<'_>) -> bool {
    let word = from.peek();
    super::element_code(word).is_some() || super::WRAPPERS.contains(&word)
}

/// `float[2, N, ?]`, `seq(float)`, `map(int64, float)`: `float` is a scalar, and `float[]` a tensor of any rank.
pub(super) fn value_type(from: &mut Cursor<'_>) -> Result<Type> {
    from.deeper(|from| {
        from.take(size_of::<Type>() + size_of::<TensorType>())?;
        let word = from.word("a type")?;
        let mut found = Type::default();
        if let Some(code) = super::element_code(word) {
            found.tensor = Some(Box::new(tensor_type(from, code)?.into()));
            return Ok(found);
        }
        from.expect("(")?;
        match word {
            "map" => {
                let key = from.word("the type of keys")?;
                let Some(key_type) = super::element_code(key) else {
                    return Err(from.error(&format!("expected the type of keys, found `{key}`")));
                };
                from.expect(",")?;
                let value_type = Some(Box::new(value_type(from)?.into()));
                found.map = Some(Box::new(MapType { key_type, value_type, ..MapType::default() }.into()));
            }
            "sparse_tensor" => {
                let word = from.word("an element type")?;
                let Some(code) = super::element_code(word) else {
                    return Err(from.error(&format!("expected an element type, found `{word}`")));
                };
                found.sparse_tensor = Some(Box::new(tensor_type(from, code)?.into()));
            }
            _ => {
                let elem_type = Some(Box::new(value_type(from)?.into()));
                let element = Some(Box::new(ElementType { elem_type, ..ElementType::default() }.into()));
                match word {
                    "seq" => found.sequence = element,
                    _ => found.optional = element,
                }
            }
        }
        from.expect(")")?;
        Ok(found)
    })
}

fn tensor_type(from: &mut Cursor<'_>, elem_type: i32) -> Result<TensorType> {
    let mut shape = Shape::default();
    let mut known = true;
    // After the dimensions of a tensor, its place in another file may follow.
    if from.accept("[") {
        known = !from.sees("]");
        from.list("]", |from| {
            from.take(2 * size_of::<Part<crate::document::Dimension>>())?;
            let size = if from.accept("?") {
                Size::Unknown
            } else if from.sees_name() {
                Size::Symbol(from.name("a symbol")?)
            } else {
                Size::Fixed(from.parse("a dimension")?)
            };
            shape.dims.push(crate::document::Dimension::from(size).into());
            Ok(())
        })?;
    }
    let shape = known.then(|| Box::new(shape.into()));
    Ok(TensorType { elem_type, shape, ..TensorType::default() })
}
