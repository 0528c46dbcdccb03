//! Changes of declared shapes.

use super::{Document, Graph, Part, Size, ValueInfo};
use crate::error::{Error, Result, quote};
use crate::model::LoadOptions;
use std::collections::HashSet;

impl Document {
    /// The symbols of all declared shapes of the graph, in their order.
    pub fn symbols(&self) -> Vec<String> {
        let (mut all, mut seen) = (Vec::new(), HashSet::new());
        let lists = [&self.graph.inputs, &self.graph.outputs, &self.graph.value_info];
        for dim in lists.into_iter().flatten().flat_map(|info| info.dims().unwrap_or_default()) {
            if let Size::Symbol(name) = &dim.size
                && !name.is_empty()
                && seen.insert(name)
            {
                all.push(name.clone());
            }
        }
        all
    }

    /// Puts a size in the place of a symbol, in all declared shapes of the graph. In bodies and functions the symbol may stand
    /// for another size: there it becomes this one where that follows, and unknown elsewhere.
    ///
    /// # Errors
    /// No shape has the symbol, or the size is negative.
    pub fn set_symbol(&mut self, symbol: &str, size: &Size) -> Result<()> {
        if !self.symbols().iter().any(|known| known == symbol) {
            return Err(Error::input(format!("no shape has the symbol {}", quote(symbol))).about(symbol));
        }
        size.check()?;
        let old = Size::Symbol(symbol.to_string());
        if old == *size {
            return Ok(());
        }
        self.change_if(|content| content.graph.change_if(|graph| graph.replace_size(&old, &|_, _| size.clone())));
        let mut open = self.clone();
        let unknown = |_: &str, _| Size::Unknown;
        let inside = open.change_if(|content| {
            let mut replace = |body: &mut Graph| body.replace_size(&old, &unknown);
            let mut changed = content.graph.change_if(|graph| graph.each_body_inside(&mut replace));
            for function in &mut content.functions {
                changed |= function.change_if(|function| replace_in(&mut function.value_info, &old, &unknown));
            }
            changed
        });
        if inside {
            match open.inspect(&self.options) {
                Ok(found) => self.replace_inside(&old, size, &found),
                Err(_) => *self = open,
            }
        }
        Ok(())
    }

    /// Sets a dimension of an input.
    ///
    /// # Errors
    /// There is no such input, no shape is declared for it, it has no such dimension, or the size is negative.
    pub fn set_dimension(&mut self, input: &str, axis: usize, size: Size) -> Result<()> {
        size.check()?;
        let wrong = |why: String| Error::input(format!("input {} {why}", quote(input))).about(input);
        let inputs = &mut self.graph.inputs;
        let info = inputs.iter_mut().find(|info| info.name == input);
        let info = info.ok_or_else(|| Error::input(format!("there is no input {}", quote(input))).about(input))?;
        let rank = info.dims().ok_or_else(|| wrong("has no declared shape".to_string()))?.len();
        let dim = info.dims_mut().and_then(|dims| dims.get_mut(axis));
        let s = if rank == 1 { "" } else { "s" };
        dim.ok_or_else(|| wrong(format!("has {rank} dimension{s}: there is no dimension {axis}")))?.size = size;
        Ok(())
    }

    /// Declares for outputs of the graph and its bodies the sizes that follow, after dimensions of inputs were set. As
    /// [`Document::drop_shapes`] otherwise.
    ///
    /// # Errors
    /// As [`Document::inspect`].
    pub fn renew_shapes(&mut self, options: &LoadOptions) -> Result<()> {
        let (mut declared, mut after) = (Vec::new(), self.clone());
        after.change_if(|content| {
            content.graph.change_if(|graph| {
                graph.each_body_inside(&mut |body| {
                    declared.extend(body.outputs.iter().cloned());
                    false
                })
            })
        });
        after.drop_shapes();
        let found = after.inspect(options)?;
        after.declare_outputs(&found);
        // A Loop without a trip gives what its body declares.
        let mut declared = declared.into_iter();
        let mut restore = |body: &mut Graph| {
            let mut changed = false;
            for (info, old) in body.outputs.iter_mut().zip(&mut declared) {
                changed |= info.change_if(|info| restore(info, &old));
            }
            changed
        };
        after.change_if(|content| content.graph.change_if(|graph| graph.each_body_inside(&mut restore)));
        *self = after;
        Ok(())
    }

    /// Drops the shapes that were declared for what nodes of the graph, its bodies and functions compute. Outputs of the graph,
    /// and inputs and outputs of bodies, keep their ranks: those of bodies say what a Loop passes in and what it gives
    /// without a trip.
    pub fn drop_shapes(&mut self) {
        self.change_if(|content| {
            let mut changed = content.graph.change_if(Graph::drop_shapes);
            for info in &mut content.graph.outputs {
                changed |= info.change_if(open_dims);
            }
            for function in &mut content.functions {
                changed |= function.change_if(|function| {
                    let some = !function.value_info.is_empty();
                    function.value_info.clear();
                    some
                });
            }
            changed
        });
    }
}

/// Makes sizes unknown that were so before.
fn restore(info: &mut ValueInfo, old: &Part<ValueInfo>) -> bool {
    let Some(dims) = old.dims() else {
        let changed = info.value_type != old.value_type;
        info.value_type.clone_from(&old.value_type);
        return changed;
    };
    let mut changed = false;
    for (dim, _) in info.dims_mut().into_iter().flatten().zip(dims).filter(|(_, old)| old.size == Size::Unknown) {
        changed |= dim.size != Size::Unknown;
        dim.size = Size::Unknown;
    }
    changed
}

/// Makes all dimensions unknown.
fn open_dims(info: &mut ValueInfo) -> bool {
    if info.dims().unwrap_or_default().iter().all(|dim| dim.size == Size::Unknown) {
        return false;
    }
    info.dims_mut().into_iter().flatten().for_each(|dim| dim.size = Size::Unknown);
    true
}

impl Graph {
    fn drop_shapes(&mut self) -> bool {
        let mut changed = !self.value_info.is_empty();
        self.value_info.clear();
        changed |= self.each_body(&mut |operator, body| {
            let mut changed = body.drop_shapes();
            // The number of the trip, and the condition.
            let own = if operator == "Loop" { 2 } else { 0 };
            for info in body.inputs.iter_mut().skip(own).chain(&mut body.outputs) {
                changed |= info.change_if(open_dims);
            }
            changed
        });
        changed
    }

    /// Replaces a size in the shapes of the graph itself.
    pub(super) fn replace_size(&mut self, old: &Size, new: &NewSize<'_>) -> bool {
        let mut changed = false;
        for list in [&mut self.inputs, &mut self.outputs, &mut self.value_info] {
            changed |= replace_in(list, old, new);
        }
        changed
    }

    /// Changes all bodies in the graph, outer ones first.
    fn each_body_inside(&mut self, change: &mut dyn FnMut(&mut Graph) -> bool) -> bool {
        self.each_body(&mut |_, body| change(body) | body.each_body_inside(change))
    }

    /// Changes the bodies of the graph's nodes. `change` gets the operator of the node, and returns whether it does.
    pub(super) fn each_body(&mut self, change: &mut dyn FnMut(&str, &mut Graph) -> bool) -> bool {
        let mut changed = false;
        for node in &mut self.nodes {
            changed |= node.change_if(|node| {
                let mut changed = false;
                for attribute in &mut node.attributes {
                    changed |= attribute.change_if(|attribute| {
                        let mut changed = false;
                        for body in attribute.graphs_mut() {
                            changed |= body.change_if(|body| change(&node.op_type, body));
                        }
                        changed
                    });
                }
                changed
            });
        }
        changed
    }
}

/// The new size in a dimension of a value.
type NewSize<'a> = dyn Fn(&str, usize) -> Size + 'a;

/// Replaces a size in declared shapes.
pub(super) fn replace_in(list: &mut [Part<ValueInfo>], old: &Size, new: &NewSize<'_>) -> bool {
    let mut changed = false;
    for info in list {
        if info.dims().unwrap_or_default().iter().any(|dim| dim.size == *old) {
            changed = true;
            let name = info.name.clone();
            let dims = info.dims_mut().into_iter().flatten().enumerate();
            dims.filter(|(_, dim)| dim.size == *old).for_each(|(axis, dim)| dim.size = new(&name, axis));
        }
    }
    changed
}
