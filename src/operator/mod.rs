//! Operators: each reads its node once at load, and is then a pure function.

mod axis;
mod blocks;
mod bytes;
mod call;
mod context;
mod control;
mod dequantized;
mod expand;
mod fused;
mod inference;
mod lane_chain;
mod node;
mod rounded;
mod rowwise;
mod scale;
mod sources;
mod values;

pub(crate) use axis::Axis;
pub(crate) use blocks::{
    Blockwise, Constants, Ends, How, InBlocks, Laid, Layout, Pointwise, Windowed, bytes_from_blocks, bytes_to_blocks,
    image_in_blocks, in_blocks, in_planes, laid_out, of_channels, output_in_blocks, output_of_in_blocks,
    parts_in_blocks,
};
pub(crate) use bytes::{ByteProduct, ByteRows, ByteScale, Floats, Table};
pub use call::Call;
pub(crate) use call::one_element;
pub use context::Cancel;
pub(crate) use context::Context;
pub(crate) use control::{Control, Resume, Step};
pub(crate) use dequantized::Dequantized;
pub(crate) use expand::{Body, BodyValue, Expansion, Resolver, gate};
pub(crate) use fused::{
    Chain, Form, Fused, HeadsIn, MatrixProduct, ProductThen, Rowwise, ScoreScale, StepInput, StepInputs, Tail, Weighing,
};
pub use inference::Inference;
pub(crate) use inference::{Count, broadcast};
pub(crate) use lane_chain::{Does, Extent, LaneChain, Lanewise};
pub(crate) use node::{BodyFacts, Note};
pub use node::{Compatibility, Node};
pub(crate) use rounded::Rounded;
pub(crate) use rowwise::{Align, Held};
pub(crate) use scale::Scaling;
pub(crate) use sources::{Feeds, Source, Sources};

pub use values::Values;

pub use crate::schema::Attribute;
pub use crate::tensor::NewTensor;
pub use crate::value::Fact;

use crate::error::{Error, Result};
use crate::schema::{AttributeKind, Schema};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// The operator of a node.
///
/// Before [`run`](Operator::run) is called, the engine has checked the number of inputs and outputs and the inputs'
/// types against the operator's [schema](crate::schema::Schema); after it, the outputs' types. In errors it adds the
/// node and the operator, so an operator only says what is wrong.
pub trait Operator: fmt::Debug + Send + Sync {
    /// Computes the outputs, in the order of the schema. One that the node doesn't name may be a hole, or have any value:
    /// see [`Call::wants`].
    ///
    /// # Errors
    /// If the operator's definition says so; see [`Error::input`](crate::Error::input).
    fn run(&self, call: &mut Call<'_>) -> Result<Values>;

    /// Infers facts about the outputs from those about the inputs, at load. By default nothing is inferred but types.
    ///
    /// # Errors
    /// If a run with such inputs would fail. The model loads nevertheless; an inspection shows it.
    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let _ = facts;
        Ok(())
    }

    /// Whether equal inputs give equal outputs in every run. What isn't pure is never computed at load; nor are users'
    /// operators.
    fn pure(&self) -> bool {
        true
    }

    /// The input that equals the only output bit by bit, if there is one: such a node need not run.
    fn forwards(&self) -> Option<usize> {
        None
    }
}

/// Makes the operator of a node, once, when a model is loaded.
pub(crate) type Load = fn(&Node<'_>) -> Result<Box<dyn Operator>>;

/// As [`Load`], for an operator that computes element by element.
pub(crate) type LoadRowwise = fn(&Node<'_>) -> Result<Arc<dyn Rowwise>>;

/// As [`Load`], for a product of matrices.
pub(crate) type LoadProduct = fn(&Node<'_>) -> Result<Arc<dyn MatrixProduct>>;

/// As [`Load`], for an operator that has a form for blocks.
pub(crate) type LoadBlockwise = fn(&Node<'_>) -> Result<Arc<dyn Blockwise>>;

/// As [`Load`], for an operator with bodies.
pub(crate) type LoadControl = fn(&Node<'_>) -> Result<Box<dyn Control>>;

/// As [`Load`], for an operator that is written with others.
pub(crate) type Expand = fn(&Node<'_>, &mut Body<'_>) -> Result<()>;

/// Infers facts about the outputs of an operator that isn't implemented, as [`Operator::infer`] does.
pub(crate) type Infer = fn(&mut Inference<'_>) -> Result<()>;

/// As [`Load`], for a user's operator.
pub(crate) type LoadCustom = Arc<dyn Fn(&Node<'_>) -> Result<Box<dyn Operator>> + Send + Sync>;

/// How an operator is made.
#[derive(Clone)]
pub(crate) enum Make {
    /// A built-in operator.
    Run(Load),
    /// One that computes element by element.
    Rowwise(LoadRowwise),
    /// A product of matrices.
    Product(LoadProduct),
    /// One that has a form for blocks of channels.
    Blockwise(LoadBlockwise),
    /// A built-in operator with bodies.
    Control(LoadControl),
    /// One of ours, written with others.
    Expand(Expand),
    /// A user's operator.
    Custom(LoadCustom),
    /// The standard has it, but it doesn't run here, and why: its nodes are only checked.
    Missing(Infer, &'static str),
}

impl fmt::Debug for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Make::Run(_) => "Run",
            Make::Rowwise(_) => "Rowwise",
            Make::Product(_) => "Product",
            Make::Blockwise(_) => "Blockwise",
            Make::Control(_) => "Control",
            Make::Expand(_) => "Expand",
            Make::Custom(_) => "Custom",
            Make::Missing(..) => "Missing",
        })
    }
}

/// The operator of a node, ready to run.
#[derive(Debug)]
pub(crate) enum Made {
    Plain(Arc<dyn Operator>),
    Rowwise(Arc<dyn Rowwise>),
    Product(Arc<dyn MatrixProduct>),
    Blockwise(Arc<dyn Blockwise>),
    Control(Box<dyn Control>),
    /// In the place of the nodes of the node's only body.
    Fused(Box<dyn Fused>),
    /// What replaces the node.
    Body(Expansion),
    /// It can't run.
    Missing(Infer),
}

impl Made {
    /// As [`Operator::infer`].
    pub(crate) fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        match self {
            Made::Plain(operator) => operator.infer(facts),
            Made::Rowwise(operator) => operator.infer(facts),
            Made::Product(operator) => operator.infer(facts),
            Made::Blockwise(operator) => operator.infer(facts),
            Made::Control(control) => control.infer(facts),
            Made::Body(_) | Made::Fused(_) => Ok(()),
            Made::Missing(infer) => infer(facts),
        }
    }

    /// The operator, if it has no bodies.
    pub(crate) fn plain(&self) -> Option<&dyn Operator> {
        match self {
            Made::Plain(operator) => Some(&**operator),
            Made::Rowwise(operator) => Some(&**operator),
            Made::Product(operator) => Some(&**operator),
            Made::Blockwise(operator) => Some(&**operator),
            _ => None,
        }
    }
}

/// Why an operator of the standard can't run.
pub(crate) const NOT_IMPLEMENTED: &str = "the operator is not implemented";

/// An operator and the versions of it that are implemented, oldest first.
pub(crate) struct Implementation {
    pub(crate) domain: &'static str,
    pub(crate) name: &'static str,
    pub(crate) versions: &'static [i64],
    pub(crate) make: Make,
}

impl Implementation {
    /// One of the default domain, made by [`Make::Run`].
    pub(crate) const fn run(name: &'static str, versions: &'static [i64], load: Load) -> Implementation {
        Implementation { domain: "", name, versions, make: Make::Run(load) }
    }

    /// As [`run`](Implementation::run), by [`Make::Rowwise`].
    pub(crate) const fn rowwise(name: &'static str, versions: &'static [i64], load: LoadRowwise) -> Implementation {
        Implementation { domain: "", name, versions, make: Make::Rowwise(load) }
    }

    /// As [`run`](Implementation::run), by [`Make::Product`].
    pub(crate) const fn product(name: &'static str, versions: &'static [i64], load: LoadProduct) -> Implementation {
        Implementation { domain: "", name, versions, make: Make::Product(load) }
    }

    /// As [`run`](Implementation::run), by [`Make::Blockwise`].
    pub(crate) const fn blockwise(name: &'static str, versions: &'static [i64], load: LoadBlockwise) -> Implementation {
        Implementation { domain: "", name, versions, make: Make::Blockwise(load) }
    }

    /// As [`run`](Implementation::run), by [`Make::Control`].
    pub(crate) const fn control(name: &'static str, versions: &'static [i64], load: LoadControl) -> Implementation {
        Implementation { domain: "", name, versions, make: Make::Control(load) }
    }

    /// Whether it runs in some version.
    pub(crate) fn runs(&self) -> bool {
        !matches!(self.make, Make::Missing(..))
    }
}

/// An operator as errors name it: all nodes share it.
#[derive(Debug)]
pub(crate) struct Label {
    pub(crate) name: Box<str>,
    pub(crate) domain: Box<str>,
    /// The version that applies, if it is known.
    pub(crate) version: Option<i64>,
}

impl Label {
    pub(crate) fn new(name: &str, domain: &str, version: Option<i64>) -> Label {
        Label { name: name.into(), domain: domain.into(), version }
    }
}

/// An operator version and how to make it.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) label: Arc<Label>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) make: Make,
    pub(crate) compatibility: Compatibility,
}

impl Resolved {
    /// Upper bound on the memory of an operator that was looked up, with its schema.
    pub(crate) const BYTES: u64 = 9 << 10;

    pub(crate) fn new(schema: Arc<Schema>, make: Make, compatibility: Compatibility) -> Resolved {
        let label = Label::new(&schema.name, &schema.domain, Some(schema.since_version));
        Resolved { label: Arc::new(label), schema, make, compatibility }
    }

    /// A node of this operator with these attributes, which have been checked against the schema. `note` is what a user should
    /// know of it, once it is loaded.
    pub(crate) fn node<'a>(
        &'a self,
        attributes: &'a [(String, Attribute)],
        inputs: &'a [Option<&'a Fact>],
        outputs: usize,
        bodies: &'a [BodyFacts],
        note: &'a Cell<Option<Note>>,
    ) -> Node<'a> {
        let (schema, compatibility) = (&*self.schema, self.compatibility);
        Node { schema, attributes, inputs, outputs, bodies, compatibility, note, budget: None }
    }

    /// The operator of a node. If it is written with others, `resolver` finds these.
    pub(crate) fn load(&self, node: &Node<'_>, resolver: &dyn Resolver) -> Result<Made> {
        let node = &Node { budget: Some(resolver.budget()), ..*node };
        match &self.make {
            Make::Run(load) => load(node).map(|operator| Made::Plain(operator.into())),
            Make::Rowwise(load) => load(node).map(Made::Rowwise),
            Make::Product(load) => load(node).map(Made::Product),
            Make::Blockwise(load) => load(node).map(Made::Blockwise),
            Make::Custom(load) => load(node).map(|operator| Made::Plain(operator.into())),
            Make::Control(load) => load(node).map(Made::Control),
            Make::Expand(expand) => {
                let mut body = Body::new(resolver);
                expand(node, &mut body).map(|()| Made::Body(body.finish()))
            }
            Make::Missing(infer, _) => Ok(Made::Missing(*infer)),
        }
    }

    /// Whether its nodes may have subgraphs.
    pub(crate) fn has_bodies(&self) -> bool {
        match self.make {
            Make::Control(_) => true,
            Make::Expand(_) => self.schema.attributes.iter().any(|formal| formal.kind == AttributeKind::Graph),
            _ => false,
        }
    }

    /// Why its nodes can't run, if they can't.
    pub(crate) fn missing(&self) -> Option<Error> {
        match self.make {
            Make::Missing(_, why) => Some(Error::unsupported(why)),
            _ => None,
        }
    }

    /// Whether its nodes can only be checked.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.make, Make::Missing(..))
    }

    /// Whether a user made it.
    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.make, Make::Custom(_))
    }
}
