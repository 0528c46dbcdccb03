//! Shapes and ranks: at least as many as onnx's own inference knows.

use crate::common::archive::in_parallel;
use crate::common::proto::tensor_shape_proto::dimension;
use crate::common::proto::{GraphProto, ModelProto, NodeProto};
use crate::strip::{open, shape, strip};
use crate::{ARCHIVES, FOLDER, File, files, table};
use anyhow::{Context, Result, ensure};
use onnxref::inspect::{Fate, Origin};
use onnxref::{Dim, LoadOptions};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::AddAssign;

/// What is known of a tensor's shape: nothing, or its rank and what is known of each dimension.
type Shape = Option<Vec<Known>>;

/// What is known of a dimension.
#[derive(Clone, Debug, PartialEq)]
enum Known {
    No,
    /// It is a symbol that an input has.
    Symbol,
    Size(usize),
}

/// How much is known.
#[derive(Clone, Copy, Default, PartialEq)]
struct Count {
    ranks: usize,
    dims: usize,
}

/// A model whose shapes are compared.
struct Model<'a> {
    archive: &'static str,
    path: &'a str,
    bytes: &'a [u8],
    /// Whether symbols replace the sizes of its inputs.
    is_open: bool,
}

/// What onnx and we know about a model.
struct Compared {
    values: usize,
    ours: Count,
    onnx: Count,
    /// What onnx knows and we don't.
    behind: Count,
    /// Where that begins: an output of an operator, whether this is missing here, and what is unknown.
    begins: Vec<(String, bool, Count)>,
    /// Values with dimensions that both know, and differ: ours, onnx's.
    conflicts: Vec<(String, String, String)>,
}

#[test]
fn as_many_shapes_as_onnx() -> Result<()> {
    let text = std::fs::read_to_string(format!("{FOLDER}/onnx.tsv"))?;
    let lines = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect());
    let lines: HashMap<(&str, &str), Vec<&str>> =
        lines.map(|columns: Vec<&str>| ((columns[0], columns[1]), columns[2..].to_vec())).collect();
    let models: Vec<Model> = models(files()?).collect();
    ensure!(lines.len() == models.len(), "onnx.tsv has {} models of {}", lines.len(), models.len());
    let compared = in_parallel(&models, |model| {
        let line = lines.get(&(model.archive, model.path)).context("not in onnx.tsv")?;
        compare(model, line).with_context(|| format!("{} {}", model.archive, model.path))
    });
    let compared = compared.into_iter().collect::<Result<Vec<_>>>()?;
    let behind = print(&models, &compared);
    ensure!(behind.is_empty(), "onnx knows more of {behind:?}");

    let (mut behind, mut conflicts) = (Vec::new(), Vec::new());
    for (model, found) in models.iter().zip(&compared) {
        let model = [model.archive.to_string(), model.path.to_string()];
        if found.behind != Count::default() {
            let counts = [found.ours, found.onnx, found.behind].map(|count| count.to_string());
            let begins: BTreeSet<&str> = found.begins.iter().map(|(operator, ..)| operator.as_str()).collect();
            let begins = begins.into_iter().collect::<Vec<_>>().join(" ");
            behind.push(model.iter().cloned().chain(counts).chain([begins]).collect());
        }
        for (value, ours, onnx) in &found.conflicts {
            let columns = [value, ours, onnx].map(Clone::clone);
            conflicts.push(model.iter().cloned().chain(columns).collect());
        }
    }
    table::compare("ours.tsv", "archive\tmodel\tours\tonnx's\tbehind (ranks dimensions)\tfrom", 2, &behind)?;
    table::compare_reasoned("conflicts.tsv", "archive\tmodel\tvalue\tours\tonnx's", 3, &conflicts)
}

/// The models whose shapes are compared: all of `onnx-test-data`, and those of two archives with symbols for sizes.
fn models(files: &[File]) -> impl Iterator<Item = Model<'_>> {
    let of = |archive, is_open, from: &'static str| {
        let files = files.iter().filter(move |file| file.archive == from);
        files.map(move |file| Model { archive, is_open, path: &file.path, bytes: &file.bytes })
    };
    let archives = ARCHIVES.map(|(archive, ..)| (archive, false, archive));
    let open = [("open-networks", true, "networks"), ("open-node", true, "node")];
    archives.into_iter().chain(open).flat_map(move |(archive, is_open, from)| of(archive, is_open, from))
}

fn compare(model: &Model<'_>, line: &[&str]) -> Result<Compared> {
    let mut proto = ModelProto::decode(model.bytes)?;
    strip(&mut proto);
    if model.is_open {
        proto.graph.iter_mut().for_each(open);
    }
    let bytes = proto.encode_to_vec();
    let graph = proto.graph.as_mut().context("no graph")?;
    let symbols = symbols(graph);
    let (found, missing) = inspect(bytes, &symbols)?;
    let mut seen = HashSet::new();
    let outputs =
        graph.node.iter().flat_map(|node| (0..).zip(&node.output).map(move |(k, name)| (name.as_str(), k, node)));
    let values: Vec<(&str, usize, &NodeProto)> =
        outputs.filter(|(name, ..)| !name.is_empty() && seen.insert(*name)).collect();

    let &[count, ranks, dims, shapes] = line else { anyhow::bail!("{line:?}") };
    let theirs = parse(shapes)?;
    ensure!(theirs.len() == values.len() && count == values.len().to_string(), "{} values", values.len());
    let mut compared = Compared {
        values: values.len(),
        ours: Count::default(),
        onnx: Count::default(),
        behind: Count::default(),
        begins: Vec::new(),
        conflicts: Vec::new(),
    };
    // Values of which we know less than onnx.
    let mut open = HashSet::new();
    for ((name, output, node), theirs) in values.into_iter().zip(&theirs) {
        let ours = found.get(name).unwrap_or(&None);
        compared.ours += known(ours);
        compared.onnx += known(theirs);
        let behind = behind(ours, theirs);
        if behind != Count::default() {
            compared.behind += behind;
            open.insert(name);
            if !node.input.iter().any(|input| open.contains(input.as_str())) {
                let operator = node.op_type();
                let from = if output == 0 { operator.to_string() } else { format!("{operator}[{output}]") };
                compared.begins.push((from, missing.contains(operator), behind));
            }
        }
        if differ(ours, theirs) {
            compared.conflicts.push((name.to_string(), text(ours), text(theirs)));
        }
    }
    ensure!(compared.onnx.to_string() == format!("{ranks} {dims}"), "{ranks} ranks and {dims} dimensions");
    Ok(compared)
}

/// What we know of the tensors that nodes of the main graph produce; the operators that are missing here.
fn inspect(bytes: Vec<u8>, symbols: &HashSet<String>) -> Result<(HashMap<String, Shape>, HashSet<String>)> {
    let graph = LoadOptions::default().inspect_bytes(bytes)?.graph;
    let missing = graph.nodes.iter().filter(|node| node.fate == Fate::Missing).map(|node| node.operator.clone());
    let missing = missing.collect();
    let known = |dim: Dim| match dim {
        Dim::Fixed(size) => Known::Size(size),
        Dim::Symbol(name) if symbols.contains(&name) => Known::Symbol,
        _ => Known::No,
    };
    let made =
        graph.values.into_iter().filter(|value| value.scope.is_none() && matches!(value.origin, Origin::Node(_)));
    let tensors = made.filter(|value| value.value_type.as_ref().is_none_or(|found| found.dtype().is_some()));
    let shapes = tensors.map(|value| (value.name, value.shape.map(|dims| dims.into_iter().map(known).collect())));
    Ok((shapes.collect(), missing))
}

/// The symbols in the shapes of the inputs.
fn symbols(graph: &mut GraphProto) -> HashSet<String> {
    let types = graph.input.iter_mut().filter_map(|info| info.r#type.as_mut());
    let dims = types.filter_map(|of| shape(of)?.as_ref()).flat_map(|shape| &shape.dim);
    let symbols = dims.filter_map(|dim| match dim.value.as_ref()? {
        dimension::Value::DimParam(name) if !name.is_empty() => Some(name.clone()),
        _ => None,
    });
    symbols.collect()
}

/// The shapes of a line of `onnx.tsv`, as `tools/export_shapes.py` writes them.
fn parse(text: &str) -> Result<Vec<Shape>> {
    let mut shapes = Vec::new();
    for word in text.split_whitespace() {
        let (word, count) = word.split_once('*').unwrap_or((word, "1"));
        let dim = |word: &str| match word {
            "?" => Known::No,
            word => word.parse().map_or(Known::Symbol, Known::Size),
        };
        let shape = match word {
            "-" => None,
            "." => Some(Vec::new()),
            word => Some(word.split(',').map(dim).collect()),
        };
        shapes.extend(std::iter::repeat_n(shape, count.parse()?));
    }
    Ok(shapes)
}

fn text(shape: &Shape) -> String {
    let dim = |dim: &Known| match dim {
        Known::No => "?".to_string(),
        Known::Symbol => "symbol".to_string(),
        Known::Size(size) => size.to_string(),
    };
    shape.as_ref().map_or("-".to_string(), |dims| format!("[{}]", dims.iter().map(dim).collect::<Vec<_>>().join(", ")))
}

fn known(shape: &Shape) -> Count {
    let dims = shape.iter().flatten().filter(|dim| **dim != Known::No).count();
    Count { ranks: usize::from(shape.is_some()), dims }
}

/// What is known to the second and not to the first.
fn behind(ours: &Shape, theirs: &Shape) -> Count {
    match (ours, theirs) {
        (None, theirs) => known(theirs),
        (_, None) => Count::default(),
        (Some(ours), Some(theirs)) => {
            let behind = |(ours, theirs): &(&Known, &Known)| **ours == Known::No && **theirs != Known::No;
            Count { ranks: 0, dims: ours.iter().zip(theirs).filter(behind).count() }
        }
    }
}

/// Whether the ranks are not the same, or a size that both know.
fn differ(ours: &Shape, theirs: &Shape) -> bool {
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return false };
    let differ =
        |(ours, theirs)| matches!((ours, theirs), (&Known::Size(ours), &Known::Size(theirs)) if ours != theirs);
    ours.len() != theirs.len() || ours.iter().zip(theirs).any(differ)
}

/// Prints the sums by archive, and the operators from which on we know less.
/// Prints the sums, and gives the archives of which onnx knows more.
fn print(models: &[Model<'_>], compared: &[Compared]) -> Vec<&'static str> {
    println!("{:13} {:>14} {:>14} {:>14} {:>14} {:>14}", "", "values", "ours: ranks", "dims", "onnx's: ranks", "dims");
    let mut behind = Vec::new();
    let mut archives: Vec<&'static str> = models.iter().map(|model| model.archive).collect();
    archives.dedup();
    for archive in archives {
        let of = models.iter().zip(compared).filter(|(model, _)| model.archive == archive).map(|(_, found)| found);
        let (mut values, mut ours, mut onnx) = (0, Count::default(), Count::default());
        for found in of {
            (values, ours, onnx) = (values + found.values, ours + found.ours, onnx + found.onnx);
        }
        if ours.ranks < onnx.ranks || ours.dims < onnx.dims {
            behind.push(archive);
        }
        println!("{archive:13} {values:14} {:14} {:14} {:14} {:14}", ours.ranks, ours.dims, onnx.ranks, onnx.dims);
    }
    for (is_open, what) in [(false, "shapes as declared"), (true, "symbols in place of sizes")] {
        let of = models.iter().zip(compared).filter(|(model, _)| model.is_open == is_open);
        println!("\nWhere we begin to know less, {what}");
        println!("values models ranks dimensions operator[output], first model");
        print_begins(of);
    }
    behind
}

fn print_begins<'a>(of: impl Iterator<Item = (&'a Model<'a>, &'a Compared)>) {
    let mut operators: BTreeMap<&str, Begin<'_>> = BTreeMap::new();
    for (model, found) in of {
        for (operator, missing, count) in &found.begins {
            let begin = operators.entry(operator).or_default();
            begin.outputs += 1;
            begin.missing |= missing;
            begin.count += *count;
            begin.models.insert((model.archive, model.path));
            begin.first = begin.first.or(Some(model));
        }
    }
    let mut operators: Vec<_> = operators.into_iter().collect();
    operators.sort_by_key(|(_, begin)| std::cmp::Reverse(begin.outputs));
    for (operator, Begin { outputs, models, count, missing, first }) in operators {
        let operator = format!("{operator}{}", if missing { " (missing here)" } else { "" });
        let first = first.map_or(String::new(), |model| format!("{} {}", model.archive, model.path));
        println!("{outputs:6} {:6} {:5} {:10} {operator:44} {first}", models.len(), count.ranks, count.dims);
    }
}

/// Outputs of an operator from which on we know less.
#[derive(Default)]
struct Begin<'a> {
    outputs: usize,
    models: HashSet<(&'a str, &'a str)>,
    count: Count,
    missing: bool,
    first: Option<&'a Model<'a>>,
}

impl std::ops::Add for Count {
    type Output = Count;

    fn add(self, other: Count) -> Count {
        Count { ranks: self.ranks + other.ranks, dims: self.dims + other.dims }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        *self = *self + other;
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.ranks, self.dims)
    }
}
