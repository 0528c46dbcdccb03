//! Shapes and ranks: at least as many as onnx's own inference knows.

use crate::common::archive::in_parallel;
use crate::common::proto::tensor_shape_proto::dimension;
use crate::common::proto::{GraphProto, ModelProto, NodeProto};
use crate::strip::{shape, strip};
use crate::{ARCHIVES, FOLDER, File, files, table};
use anyhow::{Context, Result, ensure};
use onnxref::inspect::{Fate, Origin};
use onnxref::{Dim, Model};
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
    let files = files()?;
    ensure!(lines.len() == files.len(), "onnx.tsv has {} models of {}", lines.len(), files.len());
    let compared = in_parallel(files, |file| {
        let line = lines.get(&(file.archive, file.path.as_str())).context("not in onnx.tsv")?;
        compare(&file.bytes, line).with_context(|| format!("{} {}", file.archive, file.path))
    });
    let compared = compared.into_iter().collect::<Result<Vec<_>>>()?;
    print(files, &compared);

    let (mut behind, mut conflicts) = (Vec::new(), Vec::new());
    for (file, found) in files.iter().zip(&compared) {
        let model = [file.archive.to_string(), file.path.clone()];
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

fn compare(bytes: &[u8], line: &[&str]) -> Result<Compared> {
    let mut model = ModelProto::decode(bytes)?;
    strip(&mut model);
    let bytes = model.encode_to_vec();
    let graph = model.graph.as_mut().context("no graph")?;
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
    let graph = Model::options().inspect_bytes(bytes)?.graph;
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
fn print(files: &[File], compared: &[Compared]) {
    println!("{:8} {:>14} {:>14} {:>14} {:>14} {:>14}", "", "values", "ours: ranks", "dims", "onnx's: ranks", "dims");
    for (archive, ..) in ARCHIVES {
        let of = files.iter().zip(compared).filter(|(file, _)| file.archive == archive).map(|(_, found)| found);
        let (mut values, mut ours, mut onnx) = (0, Count::default(), Count::default());
        for found in of {
            (values, ours, onnx) = (values + found.values, ours + found.ours, onnx + found.onnx);
        }
        println!("{archive:8} {values:14} {:14} {:14} {:14} {:14}", ours.ranks, ours.dims, onnx.ranks, onnx.dims);
    }
    let mut operators: BTreeMap<&str, Begin<'_>> = BTreeMap::new();
    for (file, found) in files.iter().zip(compared) {
        for (operator, missing, count) in &found.begins {
            let begin = operators.entry(operator).or_default();
            begin.outputs += 1;
            begin.missing |= missing;
            begin.count += *count;
            begin.models.insert(format!("{} {}", file.archive, file.path));
            begin.first = begin.first.or(Some(file));
        }
    }
    let mut operators: Vec<_> = operators.into_iter().collect();
    operators.sort_by_key(|(_, begin)| std::cmp::Reverse(begin.outputs));
    println!(
        "\nWhere we begin to know less: values; models; unknown ranks and dimensions; operator[output]; first model"
    );
    for (operator, Begin { outputs, models, count, missing, first }) in operators {
        let operator = format!("{operator}{}", if missing { " (missing here)" } else { "" });
        let first = first.map_or(String::new(), |file| format!("{} {}", file.archive, file.path));
        println!("{outputs:5} {:5} {:5} {:5}  {operator:44} {first}", models.len(), count.ranks, count.dims);
    }
}

/// Outputs of an operator from which on we know less.
#[derive(Default)]
struct Begin<'a> {
    outputs: usize,
    models: HashSet<String>,
    count: Count,
    missing: bool,
    first: Option<&'a File>,
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
