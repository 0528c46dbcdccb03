//! `compare --quantized`: the error that each quantized tensor adds.

mod graph;
mod noise;
mod report;

use super::{Arguments, Room, VALUE_BYTES, failed, handed_over, pairs};
use crate::failure::{Failure, NOTHING};
use crate::feeds::Feeds;
use crate::path::{Trips, ValuePath};
use crate::watch::Seen;
use crate::{Global, print, watch};
use graph::{Quantizer, Site, quantizers};
use noise::{ALL, Noise, Quantized};
use onnxref::inspect::{GraphDetails, Origin};
use onnxref::{Cancel, Model, NodeInfo, Outputs, Result, Tensor, Value};
use onnxref_view::{grouped, totals};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Runs both models, and prints the error of each quantized tensor.
pub(super) fn compare(arguments: &Arguments, global: &Global) -> std::result::Result<u8, Failure> {
    let Arguments { a, b, feeding, running, .. } = arguments;
    let b = b.as_deref().filter(|b| !super::is_recorded(b));
    let b = b.ok_or_else(|| Failure::usage("--quantized takes two models: the float one, then the quantized one"))?;
    let load = |path: &Path| running.load_as(path, |options| options.optimize(false));
    let inspect = |path: &Path| running.loading.inspect_as(path, |options| options.optimize(false));
    let (float, float_graph) = (load(a)?, inspect(a)?.graph);
    let feeds = feeding.inputs(&float)?;
    let (model, graph) = (load(b)?, inspect(b)?.graph);
    let sites = quantizers(&graph, &float_graph);
    if sites.is_empty() {
        let text = "no node of B quantizes or dequantizes: give the float model first, then the quantized one";
        return Err(Failure::new(NOTHING, format!("nothing was compared: {text}")));
    }
    let cancel = running.cancel();
    let mut known = Known::constants(&float_graph);
    let wanted: HashSet<&str> = sites.values().flat_map(Quantizer::names).collect();
    let outputs = known.run(&float, &feeds, &wanted, &cancel)?;
    drop(float_graph);
    let given = handed_over(&float, &model, &feeds, feeding)?;
    let mut meter =
        Meter { sites: &sites, known: &known, cancel: &cancel, started: Vec::new(), rows: HashMap::new(), order: 0 };
    let inputs = given.iter().cloned().collect();
    let ran = watch::run_seen(&model, inputs, &cancel, false, &mut meter);
    let mut rows: Vec<Row> = meter.rows.into_values().collect();
    let got = ran.map_err(|error| failed(error, Some("B")))?;
    // The worst first; those of the same error in the order of the run.
    rows.sort_by(|a, b| a.key().total_cmp(&b.key()).then(a.order.cmp(&b.order)));
    let outputs = compared(&got, &outputs, &cancel).map_err(Failure::run)?;
    report::print(&report::Report { rows, outputs }, global, &cancel)?;
    Ok(0)
}

impl Quantizer {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.output.iter().chain(&self.input).flat_map(|site| &site.names).map(String::as_str)
    }
}

/// The values of the float model.
struct Known(HashMap<ValuePath, Value>);

impl Known {
    /// What the model has.
    fn constants(graph: &GraphDetails) -> Known {
        let (mut known, mut open) = (HashMap::new(), vec![graph]);
        while let Some(graph) = open.pop() {
            for value in graph.values.iter().filter(|value| value.origin != Origin::Nothing) {
                let constant = value.constant.as_ref().or(value.default.as_ref());
                if let (Some(constant), Some(path)) = (constant, ValuePath::new(&value.name, value.scope.as_ref(), []))
                {
                    known.insert(path, constant.clone());
                }
            }
            open.extend(graph.nodes.iter().flat_map(|node| &node.bodies).map(|(_, body)| body));
        }
        Known(known)
    }

    /// What is fed, and of what a run gives, what is wanted.
    fn run(
        &mut self,
        model: &Model,
        feeds: &Feeds<'_>,
        wanted: &HashSet<&str>,
        cancel: &Cancel,
    ) -> std::result::Result<Outputs, Failure> {
        self.0.extend(feeds.iter().map(|(name, value)| (ValuePath::outermost(name), value.clone())));
        let mut room = Room::default();
        let outputs = watch::run(model, feeds.iter().cloned().collect(), cancel, false, |node, trips, given| {
            for (k, (name, value)) in given.iter().enumerate().filter(|(_, (name, _))| wanted.contains(name)) {
                if trips.depth() == 0 || room.take(totals::bytes(value).saturating_add(VALUE_BYTES)) {
                    self.0.insert(trips.path(node, k, name)?, (*value).clone());
                }
            }
            Ok(())
        });
        if room.refused > 0 {
            print::note(&format!("the last {} values of A in subgraphs are not compared", grouped(room.refused)));
        }
        outputs.map_err(|error| failed(error, Some("A")))
    }

    /// A value by one of its names, in the scope of another one or around it, and of the same shape.
    fn get(&self, site: &Site, near: &ValuePath, shape: &[usize]) -> Option<&Tensor> {
        site.names.iter().find_map(|name| {
            (0..=near.path.len()).rev().find_map(|depth| {
                let path = near.path.get(..depth)?.to_vec();
                let first = ValuePath { name: name.clone(), path };
                let found = self.0.get(&first).or_else(|| self.0.get(&first.first_trips()))?;
                found.tensor().ok().filter(|tensor| tensor.shape() == shape)
            })
        })
    }
}

/// The errors of a quantized tensor, of all trips through its subgraph together.
struct Row {
    name: String,
    path: ValuePath,
    weights: bool,
    node: String,
    dtype: onnxref::DType,
    shape: Vec<usize>,
    scales: usize,
    /// What quantizing adds.
    local: Option<Noise>,
    /// The difference from the float model.
    total: Option<Noise>,
    /// The place among the others in the run.
    order: usize,
}

impl Row {
    /// By what rows are sorted.
    fn key(&self) -> f64 {
        self.local.as_ref().or(self.total.as_ref()).map_or(f64::INFINITY, Noise::decibel)
    }
}

/// Measures quantized tensors while the model runs.
struct Meter<'a> {
    sites: &'a HashMap<ValuePath, Quantizer>,
    known: &'a Known,
    cancel: &'a Cancel,
    /// The inputs of nodes that quantize, and nothing of others, outermost first.
    started: Vec<Vec<Option<Value>>>,
    rows: HashMap<(ValuePath, bool), Row>,
    order: usize,
}

impl Seen for Meter<'_> {
    fn starts(&mut self, node: NodeInfo<'_>, inputs: &[Option<&Value>]) -> Result<()> {
        let quantizes = node.domain.is_empty()
            && (node.operator.contains("Quantize")
                || node.operator.contains("quantize")
                || node.operator.starts_with("QLinear"));
        let kept = if quantizes { inputs.iter().map(|input| input.cloned()).collect() } else { Vec::new() };
        self.started.push(kept);
        Ok(())
    }

    fn ends(&mut self, node: NodeInfo<'_>, trips: &Trips, outputs: &[(&str, &Value)]) -> Result<()> {
        let inputs = self.started.pop().unwrap_or_default();
        let Some((name, _)) = outputs.first().filter(|_| !inputs.is_empty()) else { return Ok(()) };
        let path = trips.path(node, 0, name)?;
        let sites = self.sites;
        let Some(quantizer) = sites.get(&path.first_trips()) else { return Ok(()) };
        let input = |k: usize| inputs.get(k)?.as_ref()?.tensor().ok();
        let output = |k: usize| outputs.get(k)?.1.tensor().ok();
        if let Some(site) = &quantizer.output {
            let dynamic = node.operator == "DynamicQuantizeLinear";
            let (scale, zero) = if dynamic { (output(1), output(2)) } else { (input(site.scale), input(site.zero)) };
            // QLinear operators have no numbers before they are quantized.
            let before = input(0).filter(|_| !node.operator.starts_with("QLinear"));
            self.measure(&node, site, &path, false, [output(0), scale, zero], before)?;
        }
        if let Some(site) = &quantizer.input {
            let tensors = [input(site.codes), input(site.scale), input(site.zero)];
            self.measure(&node, site, &path, true, tensors, None)?;
        }
        Ok(())
    }
}

impl Meter<'_> {
    /// Adds the error of codes with their scale and zero point.
    fn measure(
        &mut self,
        node: &NodeInfo<'_>,
        site: &Site,
        path: &ValuePath,
        is_input: bool,
        [codes, scale, zero]: [Option<&Tensor>; 3],
        before: Option<&Tensor>,
    ) -> Result<()> {
        let quantized =
            codes.zip(scale).and_then(|(codes, scale)| Quantized::new(codes, scale, zero, site.axis, site.block));
        let Some(quantized) = quantized else { return Ok(()) };
        let codes = quantized.codes();
        let (known, order) = (self.known.get(site, path, codes.shape()), self.order);
        self.order += 1;
        let row = self.rows.entry((path.first_trips(), is_input)).or_insert_with(|| Row {
            name: site.name.clone(),
            path: path.first_trips(),
            weights: site.constant,
            node: report::label(node),
            dtype: codes.dtype(),
            shape: codes.shape().to_vec(),
            scales: scale.map_or(0, Tensor::len),
            local: None,
            total: None,
            order,
        });
        if let Some(known) = known {
            row.total.get_or_insert_default().add(&quantized, known, ALL, self.cancel)?;
        }
        // A weight depends on no input: what it differs by is what quantizing adds.
        if let Some(before) = before.or(known.filter(|_| site.constant)) {
            row.local.get_or_insert_default().add(&quantized, before, site.range, self.cancel)?;
        }
        Ok(())
    }
}

/// The error of each output, by name or else by position; `None` without a partner of the same shape.
fn compared(got: &Outputs, want: &Outputs, cancel: &Cancel) -> Result<Vec<(String, Option<Noise>)>> {
    let mut all = Vec::new();
    for (name, got, partner) in pairs(got, want) {
        let want = partner.and_then(|name| want.get(name));
        let pair = want.and_then(|want| got.tensor().ok().zip(want.tensor().ok()));
        let mut noise = Noise::default();
        let known = match pair {
            Some((got, want)) => noise.add_floats(got, want, cancel)?,
            None => false,
        };
        all.push((name.to_string(), known.then_some(noise)));
    }
    Ok(all)
}
