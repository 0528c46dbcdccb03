//! Running a graph: a loop over its nodes.

use super::feeds::Feed;
use super::{Graph, Node, NodeOutput, Source, types};
use crate::error::{Error, Kind, Result, quote};
use crate::operator::{Arg, Call, Context, Operator, Values};
use crate::value::{Value, ValueType};
use smallvec::SmallVec;

/// What nodes produced, by slot.
#[derive(Debug, Default)]
pub(crate) struct Slots(SmallVec<[Option<Value>; 2]>);

impl Slots {
    /// Gives the memory of all values to the next run.
    pub(crate) fn clear(&mut self, context: &Context) {
        for slot in &mut self.0 {
            if let Some(value) = slot.take() {
                value.recycle(&context.memory);
            }
        }
    }

    #[inline]
    fn take(&mut self, slot: u32) -> Option<Value> {
        self.0.get_mut(slot as usize).and_then(Option::take)
    }
}

impl Graph {
    /// Runs all nodes. `feeds` has one place for each of the graph's inputs; they have been checked.
    /// `slots` has what an earlier run left, and has the outputs afterwards.
    pub(crate) fn run(&self, feeds: &[impl Feed], slots: &mut Slots, context: &Context) -> Result<()> {
        slots.clear(context);
        context.start();
        slots.0.resize_with(self.slots, || None);
        for node in &self.nodes {
            context.next_node()?;
            let values = self.call(node, feeds, slots, context).map_err(|error| node.place.locate(error))?;
            for (output, value) in node.outputs.iter().zip(values) {
                if let Some(held) = output.slot.and_then(|slot| slots.0.get_mut(slot as usize)) {
                    *held = Some(value);
                }
            }
            for slot in &node.release {
                if let Some(value) = slots.take(*slot) {
                    value.recycle(&context.memory);
                }
            }
        }
        for (k, output) in self.outputs.iter().enumerate() {
            let Some(declared) = &output.check else { continue };
            let value = self.output(k, feeds, slots)?;
            if !value.is_of(declared) {
                let (name, what, got) = (quote(&output.name), types::what(declared), value.type_text());
                let text = format!("the graph's output {name} has {what} {got}, and is declared as {declared}");
                return Err(Error::model(text).about(&output.info.name));
            }
        }
        Ok(())
    }

    /// Takes an output of the graph out after a run, or shares it if it is needed again.
    pub(crate) fn take(&self, k: usize, feeds: &[impl Feed], slots: &mut Slots) -> Result<Value> {
        let moved = match self.outputs.get(k) {
            Some(output) if output.once => match output.source {
                Source::Slot(slot) | Source::Last(slot) => slots.take(slot),
                _ => None,
            },
            _ => None,
        };
        let value = match moved {
            Some(value) => value,
            None => self.output(k, feeds, slots)?.clone(),
        };
        value.hand_out();
        Ok(value)
    }

    /// An output of the graph after a run.
    pub(crate) fn output<'a>(&'a self, k: usize, feeds: &'a [impl Feed], slots: &'a Slots) -> Result<&'a Value> {
        let output = self.outputs.get(k).ok_or_else(|| Error::input(format!("there is no output {k}")))?;
        self.find(output.source, feeds, slots).ok_or_else(missing)
    }

    fn call(&self, node: &Node, feeds: &[impl Feed], slots: &mut Slots, context: &Context) -> Result<Values> {
        // Values that move into the call leave their slots before others are borrowed.
        let mut args: SmallVec<[Arg<'_>; 3]> = SmallVec::new();
        for source in &node.inputs {
            args.push(match source {
                Some(Source::Last(slot)) => Arg::Own(slots.take(*slot).ok_or_else(missing)?),
                _ => Arg::None,
            });
        }
        for (arg, source) in args.iter_mut().zip(&node.inputs) {
            if let Some(source @ (Source::Input(_) | Source::Constant(_) | Source::Slot(_))) = source {
                *arg = Arg::Shared(self.find(*source, feeds, slots).ok_or_else(missing)?);
            }
        }
        node.run(args, context)
    }

    #[inline]
    fn find<'a>(&'a self, source: Source, feeds: &'a [impl Feed], slots: &'a Slots) -> Option<&'a Value> {
        match source {
            Source::Input(k) => {
                let k = k as usize;
                feeds.get(k).and_then(Feed::value).or_else(|| self.inputs.get(k)?.default.as_ref())
            }
            Source::Constant(k) => self.constants.get(k as usize),
            Source::Slot(k) | Source::Last(k) => slots.0.get(k as usize).and_then(Option::as_ref),
        }
    }
}

/// The plan lets no node read what isn't there, and feeds are checked.
#[cold]
fn missing() -> Error {
    Error::bug("a value is used that was not produced")
}

/// Calls an operator. What nobody reads later, and it didn't take, waits for another use.
#[inline]
pub(super) fn call<'a>(operator: &dyn Operator, mut call: Call<'a>) -> Result<Values> {
    let values = operator.run(&mut call)?;
    let context = call.context;
    for arg in call.args {
        if let Arg::Own(value) = arg {
            value.recycle(&context.memory);
        }
    }
    Ok(values)
}

impl Node {
    fn run<'a>(&'a self, args: SmallVec<[Arg<'a>; 3]>, context: &'a Context) -> Result<Values> {
        let types = if self.open { Some(self.check_inputs(&args)?) } else { None };
        let (schema, outputs, wanted) = (&*self.resolved.schema, self.outputs.len(), self.wanted);
        let mut values = call(&*self.operator, Call { args, schema, outputs, wanted, context })?;
        if values.len() != self.outputs.len() {
            let (got, want) = (values.len(), self.outputs.len());
            return Err(self.blame(format!("the operator's implementation gave {got} outputs, not {want}")));
        }
        for (k, (value, output)) in values.iter_mut().zip(&self.outputs).enumerate() {
            if output.slot.is_none() {
                continue;
            }
            let known = types.as_ref().and_then(|types| types.get(k)?.as_ref());
            let good = output.value_type.as_ref().is_some_and(|want| value.is_of(want))
                && known.is_none_or(|known| value.is_of(known));
            if !good {
                self.check_output(k, value, known, output)?;
            }
            if self.resolved.is_custom() {
                value.adopt(&context.memory)?;
            }
        }
        Ok(values)
    }

    /// The types of inputs that were not known before; gives those of the outputs.
    #[cold]
    fn check_inputs(&self, args: &[Arg<'_>]) -> Result<SmallVec<[Option<ValueType>; 1]>> {
        let types = args.iter().map(|arg| Some(arg.value()?.value_type()));
        let types = types::check(&self.resolved.schema, types, self.outputs.len());
        Ok(types.map_err(|error| error.with_kind(Kind::Input))?.outputs)
    }

    /// The type of an output is one that the schema allows and the one that the model declares.
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
                let text = format!("output {k}, {name}, has {what} {got}, and is declared as {declared}");
                return Err(Error::model(text).about(&formal.name));
            }
        };
        let text = format!("the operator's implementation gave output {k}, {name}, element type {got}, not {want}");
        Err(self.blame(text).about(&formal.name))
    }

    /// The error of an operator that doesn't keep to its schema: its author must act.
    #[cold]
    fn blame(&self, text: String) -> Error {
        if self.resolved.is_custom() { Error::input(text) } else { Error::bug(&text) }
    }
}
