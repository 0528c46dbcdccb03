//! Changes of declared shapes.

use super::{Document, Graph, Part, Size, ValueInfo};
use crate::error::{Error, Result, quote};
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

    /// Puts a size in the place of a symbol, in all declared shapes.
    ///
    /// # Errors
    /// No shape has the symbol.
    pub fn set_symbol(&mut self, symbol: &str, size: &Size) -> Result<()> {
        if !self.symbols().iter().any(|known| known == symbol) {
            return Err(Error::input(format!("no shape has the symbol {}", quote(symbol))).about(symbol));
        }
        let old = Size::Symbol(symbol.to_string());
        self.content.change_if(|content| {
            let mut changed = content.graph.change_if(|graph| graph.replace_size(&old, size));
            for function in &mut content.functions {
                changed |= function.change_if(|function| replace_in(&mut function.value_info, &old, size));
            }
            changed
        });
        Ok(())
    }

    /// Sets a dimension of an input.
    ///
    /// # Errors
    /// There is no such input, no shape is declared for it, or it has no such dimension.
    pub fn set_dimension(&mut self, input: &str, axis: usize, size: Size) -> Result<()> {
        let wrong = |why: String| Error::input(format!("input {} {why}", quote(input))).about(input);
        let inputs = &mut self.content.graph.inputs;
        let info = inputs.iter_mut().find(|info| info.name == input);
        let info = info.ok_or_else(|| Error::input(format!("there is no input {}", quote(input))).about(input))?;
        let rank = info.dims().ok_or_else(|| wrong("has no declared shape".to_string()))?.len();
        let dim = info.dims_mut().and_then(|dims| dims.get_mut(axis));
        let s = if rank == 1 { "" } else { "s" };
        dim.ok_or_else(|| wrong(format!("has {rank} dimension{s}: there is no dimension {axis}")))?.size = size;
        Ok(())
    }

    /// Drops the shapes that were declared for what nodes of the graph, its bodies and functions compute.
    pub fn drop_shapes(&mut self) {
        self.content.change_if(|content| {
            let mut changed = content.graph.change_if(Graph::drop_shapes);
            for info in &mut content.graph.outputs {
                changed |= info.change_if(drop_shape);
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

fn drop_shape(info: &mut ValueInfo) -> bool {
    let Some(value_type) = &mut info.value_type else { return false };
    value_type.change_if(|value_type| {
        let tensor = value_type.tensor.as_mut();
        tensor.is_some_and(|tensor| tensor.change_if(|tensor| tensor.shape.take().is_some()))
    })
}

impl Graph {
    fn drop_shapes(&mut self) -> bool {
        let mut changed = !self.value_info.is_empty();
        self.value_info.clear();
        changed |= self.each_body(&mut |body| {
            let mut changed = body.drop_shapes();
            for info in body.inputs.iter_mut().chain(&mut body.outputs) {
                changed |= info.change_if(drop_shape);
            }
            changed
        });
        changed
    }

    fn replace_size(&mut self, old: &Size, new: &Size) -> bool {
        let mut changed = false;
        for list in [&mut self.inputs, &mut self.outputs, &mut self.value_info] {
            changed |= replace_in(list, old, new);
        }
        changed | self.each_body(&mut |body| body.replace_size(old, new))
    }

    /// Changes the bodies of the graph's nodes. `change` returns whether it does.
    pub(super) fn each_body(&mut self, change: &mut dyn FnMut(&mut Graph) -> bool) -> bool {
        let mut changed = false;
        for node in &mut self.nodes {
            changed |= node.change_if(|node| {
                let mut changed = false;
                for attribute in &mut node.attributes {
                    changed |= attribute.change_if(|attribute| {
                        let mut changed = false;
                        for body in attribute.graphs_mut() {
                            changed |= body.change_if(&mut *change);
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

fn replace_in(list: &mut [Part<ValueInfo>], old: &Size, new: &Size) -> bool {
    let mut changed = false;
    for info in list {
        if info.dims().unwrap_or_default().iter().any(|dim| dim.size == *old) {
            changed = true;
            for dim in info.dims_mut().into_iter().flatten().filter(|dim| dim.size == *old) {
                dim.size = new.clone();
            }
        }
    }
    changed
}
