//! An operator's view of its node at load.

use crate::dtype::DType;
use crate::error::{Error, Result, quote};
use crate::limits::Budget;
use crate::schema::{Attribute, Schema};
use crate::tensor::Tensor;
use crate::value::{Fact, Value, ValueType};
use std::cell::Cell;

macro_rules! compatibility {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// Non-standard behaviour of other engines that a caller may accept.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Compatibility {
            $($(#[doc = $doc])* pub $name: bool,)*
        }

        impl Compatibility {
            /// The names of all departures, each with a description of what is accepted.
            pub const NAMES: &[(&str, &str)] = &[$((stringify!($name), concat!($($doc),*).trim_ascii())),*];

            /// Accepts a departure by name.
            ///
            /// # Errors
            /// If there is no such departure.
            pub fn allow(&mut self, name: &str) -> Result<()> {
                match name {
                    $(stringify!($name) => self.$name = true,)*
                    _ => {
                        let all: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
                        let (name, all) = (quote(name), all.join(", "));
                        return Err(Error::input(format!("there is no departure {name}: those known are {all}")));
                    }
                }
                Ok(())
            }
        }
    };
}

compatibility! {
    /// Gather-1 takes negative indices, as it does from version 11 on: -1 is the last entry.
    gather_1_negative_indices,
    /// Nodes may be in any order that has no cycle. They run in the order of the file, except that a node that reads
    /// what others produce waits for these.
    unsorted_nodes,
    /// Nodes may use a domain that the model doesn't import. It counts as imported in the newest version that is known.
    undeclared_domains,
    /// Nodes may use an operator that came later than the opset that the model imports, in its first version.
    newer_operators,
    /// A subgraph may give a value the name of one of a graph around it. In the subgraph the name is the inner value.
    shadowed_names,
    /// Flatten-1 and -9, Squeeze-1 and Unsqueeze-1 take negative axes, as they do from version 11 on: -1 is the last one.
    /// PyTorch's exporter writes such.
    negative_axes,
    /// SplitToSequence obeys `keepdims` where `split` is a scalar of 1, as it does without `split`. PyTorch's exporter means
    /// that.
    split_to_sequence_keepdims,
    /// STFT takes a real signal of rank 2, without an axis of 1 at the end. PyTorch's exporter writes such.
    stft_rank_2,
}

/// What a user should know of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// An axis is negative, and the text of the version doesn't say what that means.
    NegativeAxis,
    /// `keepdims` is 0 beside a `split` that makes it ignored.
    Keepdims,
    /// An output has a type that its version doesn't list, where no input and no attribute says that it has.
    OutputType,
}

impl Note {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Note::NegativeAxis => {
                "an axis is negative, of which the text of this version says nothing: it counts from the end"
            }
            Note::Keepdims => {
                "keepdims is ignored, as split is given (the departure split_to_sequence_keepdims obeys it)"
            }
            Note::OutputType => {
                "an output has a type that the text of this version doesn't list: it is computed as later"
            }
        }
    }
}

/// A node at load: the version of its operator, its attributes, and the known facts about its inputs. Names and kinds
/// of attributes are checked, and defaults are filled in.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    pub(super) schema: &'a Schema,
    pub(super) attributes: &'a [(String, Attribute)],
    pub(super) inputs: &'a [Option<&'a Fact>],
    pub(super) outputs: usize,
    pub(super) bodies: &'a [BodyFacts],
    pub(super) compatibility: Compatibility,
    /// What a user should know of the node.
    pub(super) note: &'a Cell<Option<Note>>,
    /// The memory of the load, while the operator is made.
    pub(super) budget: Option<&'a Budget>,
}

/// What is known about a subgraph of a node.
#[derive(Debug)]
pub(crate) struct BodyFacts {
    /// The attribute that it stands in.
    pub(crate) attribute: String,
    /// Its own inputs, without the outer values that it reads.
    pub(crate) inputs: Vec<Fact>,
    /// What is declared, which doesn't depend on optimisation.
    pub(crate) outputs: Vec<Fact>,
    /// What follows if it runs.
    pub(crate) inferred: Vec<Fact>,
}

impl BodyFacts {
    /// What is known of outputs that are stacked: what follows if it runs, and if that isn't certain, what is declared too. A
    /// size that isn't fixed is 0 without a run.
    pub(crate) fn stacked(&self, runs: bool) -> impl Iterator<Item = Fact> {
        let both = self.outputs.iter().zip(&self.inferred);
        both.map(move |(declared, inferred)| match runs {
            true => inferred.clone(),
            false => declared.common(inferred).if_no_size_is_0(),
        })
    }
}

impl BodyFacts {
    /// Fails unless the subgraph has these numbers of inputs and outputs.
    pub(crate) fn check_counts(&self, inputs: usize, outputs: usize) -> Result<()> {
        for (what, has, needs) in [("input", self.inputs.len(), inputs), ("output", self.outputs.len(), outputs)] {
            if has != needs {
                let (name, s) = (quote(&self.attribute), if has == 1 { "" } else { "s" });
                let text = format!("the subgraph {name} has {has} {what}{s}: this node needs {needs}");
                return Err(Error::model(text).attribute(&self.attribute).size(has));
            }
        }
        Ok(())
    }
}

macro_rules! attribute_of_each_kind {
    ($($(#[$doc:meta])* $name:ident: $kind:ident -> $type:ty = $value:expr;)*) => {$(
        #[doc = concat!("The value of an attribute of kind ", stringify!($kind), ".")]
        ///
        /// # Errors
        /// If the attribute is missing or of another kind.
        pub fn $name(&self, name: &str) -> Result<$type> {
            match self.attribute(name) {
                Some(Attribute::$kind(value)) => Ok($value(value)),
                other => Err(wrong(name, stringify!($kind), other)),
            }
        }
    )*};
}

impl<'a> Node<'a> {
    /// The version (`since_version`) of the operator.
    pub fn version(&self) -> i64 {
        self.schema.since_version
    }

    /// The operator's schema.
    pub fn schema(&self) -> &'a Schema {
        self.schema
    }

    /// The value of an attribute; `None` if it is not given and has no default.
    pub fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        let given = self.attributes.iter().find(|(n, _)| n == name).map(|(_, value)| value);
        given.or_else(|| self.schema.attributes.iter().find(|formal| formal.name == name)?.default.as_ref())
    }

    /// What `read` gives for an attribute; `None` if it is not given and has no default.
    pub(crate) fn optional<T>(&self, name: &str, read: impl FnOnce(&Node<'a>, &str) -> Result<T>) -> Result<Option<T>> {
        self.attribute(name).map(|_| read(self, name)).transpose()
    }

    /// Counts memory that the operator keeps, or that making it takes, before it is taken: more than its attributes do.
    pub(crate) fn bill(&self, bytes: usize) -> Result<()> {
        self.budget.map_or(Ok(()), |budget| budget.take(bytes as u64))
    }

    /// Whether an attribute is not 0.
    pub(crate) fn is_set(&self, name: &str) -> Result<bool> {
        Ok(self.int(name)? != 0)
    }

    /// Whether an attribute is 1. Its text gives a meaning to 0 and 1 only, and engines differ in that of other values.
    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        match self.int(name)? {
            0 => Ok(false),
            1 => Ok(true),
            given => Err(Error::model(format!("{name} is {given}: allowed 0, 1")).attribute(name).value(given)),
        }
    }

    /// The value that the text of an attribute stands for.
    pub(crate) fn choice<T: Copy>(&self, name: &str, allowed: &[(&str, T)]) -> Result<T> {
        let given = self.string(name)?;
        let chosen = allowed.iter().find(|(text, _)| *text == given);
        chosen
            .map(|(_, value)| *value)
            .ok_or_else(|| no_choice(name, given, &mut allowed.iter().map(|(text, _)| *text)))
    }

    /// The element type of output 0 that an attribute names, as `TensorProto.DataType` does: by its number, or by its
    /// name in an attribute of kind STRING.
    pub(crate) fn output_type(&self, name: &str) -> Result<DType> {
        let dtype = self.element_type(name)?;
        self.check_output_type(name, dtype)?;
        Ok(dtype)
    }

    /// The element type that an attribute names, as [`Node::output_type`] reads it.
    pub(crate) fn element_type(&self, name: &str) -> Result<DType> {
        let (found, given) = match self.attribute(name) {
            Some(Attribute::String(given)) => {
                (DType::all().find(|dtype| dtype.name().to_uppercase() == *given), quote(given))
            }
            _ => {
                let given = self.int(name)?;
                (i32::try_from(given).ok().and_then(DType::from_code), given.to_string())
            }
        };
        found.ok_or_else(|| Error::model(format!("{name} is {given}, which is not an element type")).attribute(name))
    }

    /// Fails if output 0 can't have a type, which comes from an attribute.
    pub(crate) fn check_output_type(&self, name: &str, value_type: impl Into<ValueType>) -> Result<()> {
        let value_type = value_type.into();
        match self.schema.output(0) {
            Some(output) if !output.types.contains(&value_type) => {
                let text = format!("{name} asks for {value_type}: allowed {}", output.types);
                Err(Error::model(text).attribute(name))
            }
            _ => Ok(()),
        }
    }

    /// The attributes that the node gives, in its order.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&'a str, &'a Attribute)> {
        self.attributes.iter().map(|(name, value)| (name.as_str(), value))
    }

    attribute_of_each_kind! {
        int: Int -> i64 = |value: &i64| *value;
        float: Float -> f32 = |value: &f32| *value;
        string: String -> &'a str = String::as_str;
        tensor: Tensor -> &'a Tensor = |value: &'a Tensor| value;
        ints: Ints -> &'a [i64] = Vec::as_slice;
        floats: Floats -> &'a [f32] = Vec::as_slice;
        strings: Strings -> &'a [String] = Vec::as_slice;
        tensors: Tensors -> &'a [Tensor] = Vec::as_slice;
        value_type: Type -> &'a ValueType = |value: &'a ValueType| value;
    }

    /// The number of inputs that the node lists; trailing optional ones may be omitted.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// The number of outputs that the node lists; trailing optional ones may be omitted.
    pub fn output_count(&self) -> usize {
        self.outputs
    }

    /// The known facts about an input; `None` if it is omitted.
    pub fn input(&self, k: usize) -> Option<&'a Fact> {
        self.inputs.get(k).copied().flatten()
    }

    /// The type of an input, if it is known.
    pub fn input_type(&self, k: usize) -> Option<&'a ValueType> {
        self.input(k)?.value_type()
    }

    /// The value of an input, if it is the same in every run.
    pub fn constant(&self, k: usize) -> Option<&'a Value> {
        self.input(k)?.value()
    }

    /// Notes what a user should know of the node: the model says it once for all of an operator.
    pub(crate) fn note(&self, note: Note) {
        self.note.set(Some(note));
    }

    /// The number and the facts of the subgraph in an attribute.
    pub(crate) fn body(&self, name: &str) -> Result<(usize, &'a BodyFacts)> {
        let found = self.bodies.iter().enumerate().find(|(_, body)| body.attribute == name);
        found.ok_or_else(|| wrong(name, "graph", None))
    }

    /// The non-standard behaviour that the caller accepts.
    pub fn compatibility(&self) -> Compatibility {
        self.compatibility
    }
}

#[cold]
fn no_choice(name: &str, given: &str, allowed: &mut dyn Iterator<Item = &str>) -> Error {
    let (given, allowed) = (quote(given), allowed.collect::<Vec<_>>().join(", "));
    Error::model(format!("{name} is {given}: allowed {allowed}")).attribute(name)
}

#[cold]
fn wrong(name: &str, kind: &str, found: Option<&Attribute>) -> Error {
    let what = if found.is_some() { "is of another kind" } else { "is not given" };
    Error::model(format!("attribute {} of kind {} {what}", quote(name), kind.to_uppercase())).attribute(name)
}
