//! Running a graph: a loop over its nodes.

use super::frames::Frame;
use super::watch::Watching;
use super::{Graph, Node, NodeOutput, Output, Runs, types};
use crate::error::{Error, Kind, Result, quote};
use crate::operator::{
    Call, Context, Control, Feeds, Layout, Operator, Resume, Source, Sources, Step, Values, in_blocks, in_planes,
};
use crate::schema::Arity;
use crate::tensor::release;
use crate::value::{Value, ValueType};
use smallvec::SmallVec;

/// Values that nodes produced, by slot.
#[derive(Debug, Default)]
pub(crate) struct Slots(SmallVec<[Option<Value>; 2]>);

impl Slots {
    /// With these values in the first slots.
    pub(super) fn of(values: Vec<Option<Value>>) -> Slots {
        Slots(values.into())
    }

    /// Releases all values, so that the next run can reuse their memory.
    pub(crate) fn clear(&mut self, context: &Context) {
        for slot in &mut self.0 {
            if let Some(value) = slot.take() {
                value.recycle(&context.memory);
            }
        }
    }

    /// Drops all values during a run.
    pub(super) fn release(self, context: &Context) {
        self.0.into_iter().flatten().for_each(|value| value.release(&context.memory));
    }

    /// Makes room for the slots of a graph.
    pub(super) fn reserve(&mut self, graph: &Graph) {
        self.0.resize_with(graph.slots, || None);
    }

    #[inline]
    fn take(&mut self, slot: u32) -> Option<Value> {
        self.0.get_mut(slot as usize).and_then(Option::take)
    }
}

impl Graph {
    /// Runs all nodes. `feeds` has one place for each of the graph's inputs, already checked.
    /// `slots` may hold values of an earlier run; afterwards it holds the outputs.
    pub(crate) fn run(
        &self,
        feeds: Feeds<'_>,
        slots: &mut Slots,
        context: &Context,
        mut watch: Watching<'_>,
    ) -> Result<()> {
        slots.clear(context);
        context.start();
        slots.reserve(self);
        if let Some(frame) = self.run_from(0, feeds, slots, context, &mut watch)? {
            self.run_frames(frame, feeds, slots, context, &mut watch)?;
        }
        for (k, output) in self.outputs.iter().enumerate() {
            let Some(declared) = &output.check else { continue };
            let value = self.output(k, feeds, slots)?;
            if !value.is_of(declared) {
                let (name, what, got) = (quote(&output.name), types::what(declared), value.type_text());
                let text = format!("the graph's output {name} has {what} {got}, but is declared as {declared}");
                return Err(Error::model(text).about(&output.info.name));
            }
        }
        Ok(())
    }

    /// Runs the nodes from a place on, to the end or to the first one that enters a body.
    pub(super) fn run_from<'g>(
        &'g self,
        first: usize,
        feeds: Feeds<'_>,
        slots: &mut Slots,
        context: &Context,
        watch: &mut Watching<'_>,
    ) -> Result<Option<Frame<'g>>> {
        for (at, node) in self.nodes.iter().enumerate().skip(first) {
            context.next_node(node.inputs.len() + node.outputs.len())?;
            if let Some(watch) = watch.as_mut().filter(|watch| node.is_whole(&***watch)) {
                node.starts(&self.sources(feeds, slots), context, &mut **watch)?;
            }
            match &node.operator {
                Runs::Plain(operator) => {
                    // Sources and values stay where they were written: moving them takes as long as a small node.
                    let mut call = node.call(self.sources(feeds, slots), context);
                    let mut ran = node.run(&**operator, &mut call);
                    if let Ok(values) = &mut ran {
                        node.finish(values, slots, context, watch)?;
                    }
                    if let Err(error) = ran {
                        return Err(self.blame(at, error));
                    }
                }
                Runs::Fused(fused) => {
                    let parts = watch.as_ref().is_some_and(|watch| !watch.whole());
                    let mut call = node.call(self.sources(feeds, slots), context);
                    let mut values = if !parts && fused.operator.fits(&call) {
                        node.run(&*fused.operator, &mut call).map_err(|error| self.blame(at, error))?
                    } else {
                        let layout = fused.operator.layout();
                        let watch = if parts { &mut *watch } else { &mut None };
                        node.run_parts(&fused.nodes, layout, self.sources(feeds, slots), context, watch)?
                    };
                    match parts {
                        true => node.finish(&mut values, slots, context, &mut None)?,
                        false => node.finish(&mut values, slots, context, watch)?,
                    }
                }
                Runs::Control(bodies) => {
                    let started = node.start(&*bodies.control, self.sources(feeds, slots), context);
                    match started.map_err(|error| self.blame(at, error))? {
                        (Step::Done(mut values), _) => node.finish(&mut values, slots, context, watch)?,
                        (Step::Enter { body, feeds: given }, resume) => {
                            node.enters(body, watch)?;
                            return self.enter(at, body, given, resume, self.sources(feeds, slots), context).map(Some);
                        }
                    }
                }
            }
            if !context.keeps_packed {
                self.release_constants(node);
            }
        }
        Ok(None)
    }

    /// Lets constants that a node has read leave memory, if they are in mapped files.
    #[cold]
    fn release_constants(&self, node: &Node) {
        for source in node.inputs.iter().flatten() {
            let Source::Constant(k) = source else { continue };
            let tensor = self.constants.get(*k as usize).and_then(|value| value.tensor().ok());
            tensor.into_iter().for_each(|tensor| release(tensor.bytes()));
        }
    }

    /// Adds the node at a place to an error of its operator, and which values the formal inputs are that the error names.
    #[cold]
    pub(super) fn blame(&self, at: usize, mut error: Error) -> Error {
        let Some(node) = self.nodes.get(at) else { return error };
        let inputs = &node.resolved.schema.inputs;
        for (source, formal) in node.inputs.iter().zip(inputs) {
            let one = !matches!(formal.arity, Arity::Variadic(_)) || node.inputs.len() == inputs.len();
            let name = source.filter(|_| one).and_then(|source| self.name_of(at, source));
            if let Some(name) = name.filter(|name| !name.is_empty() && *name != formal.name) {
                error = error.naming(&formal.name, name);
            }
        }
        node.place.locate(error)
    }

    /// The name of a value that the node at a place reads.
    fn name_of(&self, at: usize, source: Source) -> Option<&str> {
        let input = |k: u32| self.inputs.get(k as usize).map(|input| input.info.name.as_str());
        match source {
            Source::Input(k) => input(k),
            Source::Constant(k) => self.constant_names.get(k as usize).map(|name| &**name),
            Source::Slot(k) | Source::Last(k) => {
                // Slots are used again: the last node before wrote it, or it is an input of a body.
                let mut before = self.nodes.get(..at)?.iter().rev().flat_map(|node| &node.outputs);
                before.find(|output| output.slot == Some(k)).map(|output| &*output.name).or_else(|| input(k))
            }
        }
    }

    /// Moves an output of the graph out after a run, or clones it if it is needed again.
    pub(crate) fn take(&self, k: usize, feeds: Feeds<'_>, slots: &mut Slots) -> Result<Value> {
        let moved = match self.outputs.get(k) {
            Some(Output { once: true, source: Source::Slot(slot), .. }) => slots.take(*slot),
            _ => None,
        };
        match moved {
            Some(value) => Ok(value),
            None => self.output(k, feeds, slots).cloned(),
        }
    }

    /// An output of the graph after a run.
    pub(crate) fn output<'a>(&'a self, k: usize, feeds: Feeds<'a>, slots: &'a Slots) -> Result<&'a Value> {
        let output = self.outputs.get(k).ok_or_else(|| Error::input(format!("there is no output {k}")))?;
        let value = match output.source {
            Source::Input(k) => feeds.get(k as usize).or_else(|| self.defaults.get(k as usize)?.as_ref()),
            Source::Constant(k) => self.constants.get(k as usize),
            Source::Slot(k) | Source::Last(k) => slots.0.get(k as usize).and_then(Option::as_ref),
        };
        // The plan reads values only after they are produced.
        value.ok_or_else(|| Error::bug("an output was not produced"))
    }

    #[inline]
    pub(super) fn sources<'a>(&'a self, feeds: Feeds<'a>, slots: &'a mut Slots) -> Sources<'a> {
        Sources { feeds, defaults: &self.defaults, constants: &self.constants, slots: &mut slots.0 }
    }
}

impl Node {
    #[inline]
    fn run(&self, operator: &dyn Operator, call: &mut Call<'_>) -> Result<Values> {
        let types = if self.open { Some(self.check_inputs(&call.sources)?) } else { None };
        let mut ran = operator.run(call);
        if let Ok(values) = &mut ran {
            self.check_outputs(values, types, call.context)?;
        }
        ran
    }

    /// Runs the nodes that it stands for, one after the other.
    #[cold]
    fn run_parts(
        &self,
        nodes: &Graph,
        layout: Option<&Layout>,
        mut sources: Sources<'_>,
        context: &Context,
        watch: &mut Watching<'_>,
    ) -> Result<Values> {
        let input = |source: &Option<Source>| source.and_then(|k| sources.take(k).or_else(|| sources.get(k).cloned()));
        let mut inputs: Vec<Option<Value>> = self.inputs.iter().map(input).collect();
        let located = |error| self.place.locate(error);
        for (k, value) in inputs.iter_mut().enumerate() {
            if let (Some(channels), Some(blocks)) = (layout.and_then(|layout| layout.input(k)), &value) {
                *value = Some(in_planes(blocks, channels, context).map_err(located)?);
            }
        }
        let mut slots = Slots::of(inputs);
        slots.reserve(nodes);
        nodes.run_from(0, Feeds::Own(&[]), &mut slots, context, watch)?;
        let values = (0..nodes.outputs.len()).map(|k| match layout.is_some_and(|layout| layout.output.is_some()) {
            true => in_blocks(&nodes.take(k, Feeds::Own(&[]), &mut slots)?, context).map_err(located),
            false => nodes.take(k, Feeds::Own(&[]), &mut slots),
        });
        let values = values.collect();
        slots.release(context);
        values
    }

    fn start(&self, control: &dyn Control, sources: Sources<'_>, context: &Context) -> Result<(Step, Box<dyn Resume>)> {
        let types = if self.open { Some(self.check_inputs(&sources)?) } else { None };
        let mut started = control.start(&mut self.call(sources, context))?;
        if let (Step::Done(values), _) = &mut started {
            self.check_outputs(values, types, context)?;
        }
        Ok(started)
    }

    #[inline]
    fn call<'a>(&'a self, sources: Sources<'a>, context: &'a Context) -> Call<'a> {
        let (schema, outputs, wanted) = (&*self.resolved.schema, self.outputs.len(), self.wanted);
        Call { inputs: &self.inputs, sources, schema, outputs, wanted, context }
    }

    /// Checks the number and types of the outputs, and counts them.
    #[inline]
    pub(super) fn check_outputs(
        &self,
        values: &mut Values,
        types: Option<SmallVec<[Option<ValueType>; 1]>>,
        context: &Context,
    ) -> Result<()> {
        if values.len() != self.outputs.len() {
            let (got, want) = (values.len(), self.outputs.len());
            return Err(self.blame(format!("the operator's implementation returned {got} outputs, not {want}")));
        }
        for (k, (value, output)) in values.iter_mut().zip(&self.outputs).enumerate() {
            if output.slot.is_none() {
                continue;
            }
            let known = types.as_ref().and_then(|types| types.get(k)?.as_ref());
            let Some(value) = value else {
                return Err(self.blame(format!("the operator's implementation left out output {k}")));
            };
            let good = output.value_type.as_ref().is_some_and(|want| value.is_of(want))
                && known.is_none_or(|known| value.is_of(known));
            if !good {
                self.check_output(k, value, known, output)?;
            }
            if self.resolved.is_custom() {
                value.adopt(&context.memory, &mut |tensor| context.check_made(tensor))?;
            }
        }
        Ok(())
    }

    /// Puts the outputs into their slots, and drops values that are not needed any more.
    #[inline]
    pub(super) fn finish(
        &self,
        values: &mut Values,
        slots: &mut Slots,
        context: &Context,
        watch: &mut Watching<'_>,
    ) -> Result<()> {
        if let Some(watch) = watch {
            self.ends(values, context, &mut **watch)?;
        }
        for (output, value) in self.outputs.iter().zip(values.iter_mut()) {
            if let Some(held) = output.slot.and_then(|slot| slots.0.get_mut(slot as usize)) {
                *held = value.take();
            }
        }
        for slot in &self.release {
            let held = slots.0.get_mut(*slot as usize);
            if let Some(Some(value)) = held.map(Option::take) {
                value.release(&context.memory);
            }
        }
        Ok(())
    }

    /// Checks the types of inputs that were unknown at load. Returns the types of the outputs.
    #[cold]
    fn check_inputs(&self, sources: &Sources<'_>) -> Result<SmallVec<[Option<ValueType>; 1]>> {
        let types = self.inputs.iter().map(|input| Some(sources.get((*input)?)?.value_type()));
        let types = types::check(&self.resolved.schema, types, self.outputs.len());
        Ok(types.map_err(|error| error.with_kind(Kind::Input))?.outputs)
    }

    /// Checks that the schema allows the type of an output, and that it is the declared one.
    #[cold]
    fn check_output(&self, k: usize, value: &Value, known: Option<&ValueType>, output: &NodeOutput) -> Result<()> {
        let Some(formal) = self.resolved.schema.output(k) else { return Ok(()) };
        let (name, got) = (quote(&formal.name), value.type_text());
        let known = output.value_type.as_ref().filter(|_| !output.declared).or(known);
        let want = match known {
            Some(known) if !value.is_of(known) => known.to_string(),
            None if value.value_type().is_some_and(|own| !formal.types.contains(&own)) => {
                format!("one of {}", formal.types)
            }
            _ => {
                let Some(declared) = output.value_type.as_ref().filter(|declared| !value.is_of(declared)) else {
                    return Ok(());
                };
                let what = types::what(declared);
                let text = format!("output {k}, {name}, has {what} {got}, but is declared as {declared}");
                return Err(Error::model(text).parameter(&formal.name));
            }
        };
        let text = format!("the operator's implementation returned output {k}, {name}, element type {got}, not {want}");
        Err(self.blame(text).parameter(&formal.name))
    }

    /// Error for an operator that violates its schema: its author must act.
    #[cold]
    fn blame(&self, text: String) -> Error {
        if self.resolved.is_custom() { Error::input(text) } else { Error::bug(&text) }
    }
}
