//! Stores images in blocks of channels from a convolution to the next, and through the nodes between them: layouts change
//! only at the ends.

use super::fuse::{Fusion, paid};
use super::lines::joined;
use super::scaled::scaled;
use super::{PassContext, constant, fact};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::draft::{Draft, DraftNode, Id};
use crate::operator::{
    Blockwise, ByteRows, Chain, Ends, Fused, How, InBlocks, Laid, Layout, Made, MatrixProduct, Rowwise, Tail, Windowed,
};
use crate::value::{Dim, Fact, Value, ValueType};
use kernels::gemm::blocks::{CHANNELS, pays};
use smallvec::SmallVec;
use std::sync::Arc;

/// Stores values in blocks that a convolution gives and others read in blocks. Nodes that can't read them get planes.
pub(super) fn blocks(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    let convolves =
        |node: &DraftNode| matches!(kind(node, draft), Some(Kind::Windows { ends: Ends::Any | Ends::Either, .. }));
    if !pays() || !draft.nodes.iter().any(convolves) {
        return Ok(());
    }
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let mut plans = Layouts::new(draft).plans();
    let mut joined = joined(&mut plans, draft, &readers);
    joined.extend(scaled(&mut plans, draft, &readers));
    let mut fusions: Vec<Fusion> = Vec::new();
    for (at, (plan, node)) in plans.into_iter().zip(&draft.nodes).enumerate() {
        if let Some((how, layout)) = plan {
            let inputs = node.inputs.iter().flatten().copied().collect();
            fusions.push(Fusion {
                nodes: [at].into_iter().collect(),
                inputs,
                operator: Box::new(Laid { how, layout }),
            });
        }
    }
    // Nodes agree about the layout of values: all of them become others, or none does.
    let cost = fusions.iter().chain(&joined).map(|fusion| fusion.cost(draft)).fold(0, u64::saturating_add);
    if context.loading.budget.take(cost).is_err() {
        return Ok(());
    }
    let mut single = joined;
    for fusion in fusions {
        let node = fusion.nodes.first().and_then(|at| draft.nodes.get_mut(*at));
        match node.filter(|node| matches!(node.operator, Some(Made::Fused(_)))) {
            // It keeps the nodes that it stands for.
            Some(node) => node.operator = Some(Made::Fused(fusion.operator)),
            None => single.push(fusion),
        }
    }
    paid(draft, single)
}

/// What a node can do with blocks.
enum Kind {
    /// See [`InBlocks::Windows`]. The inputs from the third on may be read beside, by the tail.
    Windows {
        operator: Arc<dyn Windowed>,
        tail: Option<Arc<Tail>>,
        ends: Ends,
    },
    Joined(Arc<dyn Blockwise>),
    Rowwise(Arc<dyn Rowwise>),
    Chain(Chain),
    Bytes(ByteRows),
}

/// The kind of a node that has one output.
fn kind(node: &DraftNode, draft: &Draft) -> Option<Kind> {
    let [Some(output)] = *node.outputs else { return None };
    let floats = fact(output, draft).is_some_and(is_float);
    // What reads only its first input may lack others.
    if node.open || node.inputs.contains(&None) && !matches!(node.operator, Some(Made::Blockwise(_))) {
        return None;
    }
    let windows = |made: InBlocks, tail: Option<Arc<Tail>>| {
        let InBlocks::Windows { operator, channels, ends } = made else { return None };
        let is_image = image(output, draft) == Some(channels);
        let fits = match ends {
            Ends::Input => floats || matches!(node.operator, Some(Made::Fused(_))),
            Ends::Output => floats && is_image,
            _ => is_image,
        };
        fits.then_some(Kind::Windows { operator, tail, ends })
    };
    let operands = || {
        let [Some(x), Some(w), ..] = *node.inputs else { return None };
        let filters = draft.entries.get(w.at())?.fact.value().map(Value::tensor)?.ok()?;
        Some((image(x, draft)?, filters.shape()))
    };
    let convolution = |product: &Arc<dyn MatrixProduct>| {
        let (channels, filters) = operands()?;
        product.in_blocks(channels, filters)
    };
    let of_bytes = |fused: &dyn Fused| {
        let (channels, filters) = operands()?;
        fused.byte_windows(channels, filters)
    };
    match node.operator.as_ref()? {
        Made::Product(product) => windows(convolution(product)?, None),
        Made::Blockwise(operator) => {
            let x = node.inputs.first().copied().flatten()?;
            let own = |k: usize| constant(node.inputs.get(k).copied().flatten()?, draft);
            match operator.in_blocks(image(x, draft)?, fact(x, draft)?.dims()?.len() - 2, &own)? {
                InBlocks::Joined => Some(Kind::Joined(operator.clone())),
                made => windows(made, None),
            }
        }
        Made::Rowwise(operator) if floats && operator.may_chain(DType::Float) => Some(Kind::Rowwise(operator.clone())),
        Made::Fused(fused) => match (fused.product(), fused.chain()) {
            (Some(product), _) => windows(convolution(&product.product)?, Some(product.tail.clone())),
            (_, Some(chain)) => floats.then(|| Kind::Chain(chain.clone())),
            _ => match (of_bytes(&**fused), fused.byte_rows()) {
                (Some(made), _) => windows(made, None),
                (_, rows) => rows.map(Kind::Bytes),
            },
        },
        _ => None,
    }
}

/// The channels of an image of float32 or of integers of 8 bits, unless it has a single place. It has one axis to three.
fn image(id: Id, draft: &Draft) -> Option<usize> {
    match fact(id, draft).filter(|fact| is_float(fact) || is_byte(fact))?.dims()? {
        [_, _, image @ ..] if image.iter().all(|dim| *dim == Dim::Fixed(1)) => None,
        [_, Dim::Fixed(channels), image @ ..] if *channels > 0 && image.len() <= 3 => Some(*channels),
        _ => None,
    }
}

/// Which values are in blocks, while nodes are looked at.
struct Layouts<'a> {
    draft: &'a Draft,
    kinds: Vec<Option<Kind>>,
    /// Values that some node would read in blocks.
    wanted: Vec<bool>,
    /// Values that must be in planes.
    closed: Vec<bool>,
    /// The channels of values that are in blocks.
    blocks: Vec<Option<usize>>,
}

impl<'a> Layouts<'a> {
    fn new(draft: &'a Draft) -> Layouts<'a> {
        let count = draft.entries.len();
        let kinds: Vec<Option<Kind>> = draft.nodes.iter().map(|node| kind(node, draft)).collect();
        let (mut wanted, mut closed) = (vec![false; count], vec![false; count]);
        let mark = |values: &mut Vec<bool>, id: Id| values.get_mut(id.at()).into_iter().for_each(|value| *value = true);
        draft.outputs.iter().for_each(|(_, id)| mark(&mut closed, *id));
        for (node, kind) in draft.nodes.iter().zip(&kinds) {
            if node.open
                || !node.bodies.is_empty() && !matches!(node.operator, Some(Made::Fused(_)))
                || node.outputs.contains(&None)
            {
                node.reads().for_each(|id| mark(&mut closed, id));
                continue;
            }
            for (k, id) in node.inputs.iter().enumerate().filter_map(|(k, id)| Some((k, (*id)?))) {
                let reads = match kind {
                    Some(Kind::Windows { tail, .. }) => {
                        k == 0 || tail.as_ref().is_some_and(|tail| tail.beside.contains(&k))
                    }
                    Some(Kind::Joined(_)) => true,
                    Some(Kind::Rowwise(_) | Kind::Chain(_) | Kind::Bytes(_)) => is_full(id, node, draft),
                    None => false,
                };
                if reads {
                    mark(&mut wanted, id);
                }
            }
        }
        Layouts { draft, kinds, wanted, closed, blocks: vec![None; count] }
    }

    /// What nodes become: in order, so that each knows its inputs.
    fn plans(mut self) -> Vec<Option<(How, Layout)>> {
        let kinds = std::mem::take(&mut self.kinds);
        let draft = self.draft;
        draft.nodes.iter().zip(kinds).map(|(node, kind)| self.plan(node, kind)).collect()
    }

    fn plan(&mut self, node: &DraftNode, kind: Option<Kind>) -> Option<(How, Layout)> {
        let inputs: SmallVec<[Option<usize>; 4]> = node.inputs.iter().flatten().map(|id| self.channels(*id)).collect();
        let any = inputs.iter().any(Option::is_some);
        let output = node.outputs.first().copied().flatten();
        let free = output.filter(|id| self.is(&self.wanted, *id) && !self.is(&self.closed, *id));
        let channels = free.and_then(|id| image(id, self.draft));
        let laid = match kind {
            Some(Kind::Windows { operator, tail, ends }) => {
                let reads = inputs.first().is_some_and(Option::is_some);
                let runs = match ends {
                    Ends::Any => true,
                    Ends::Either => any || channels.is_some(),
                    Ends::Both => reads && channels.is_some(),
                    Ends::Input => reads,
                    Ends::Output => channels.is_some_and(|channels| reads || channels.is_multiple_of(CHANNELS)),
                };
                runs.then(|| (How::Windows(operator, tail), channels.filter(|_| ends != Ends::Input)))
            }
            // What these give is in blocks, as what they read is, or a chain's in planes: its nodes take longer one by one.
            Some(kind) if any && (channels.is_some() || matches!(kind, Kind::Chain(_))) => {
                self.on_blocks(node, kind, &inputs).map(|how| (how, channels))
            }
            _ => None,
        };
        let (how, output) = match laid {
            Some(laid) => laid,
            None if any => (How::Planes, None),
            None => return None,
        };
        if let Some(value) = free.and_then(|id| self.blocks.get_mut(id.at())) {
            *value = output;
        }
        Some((how, Layout { inputs, output }))
    }

    /// How a node runs whose output has the form of its inputs.
    fn on_blocks(&self, node: &DraftNode, kind: Kind, inputs: &[Option<usize>]) -> Option<How> {
        let ids = || node.inputs.iter().flatten();
        let fits = |(id, channels): (&Id, &Option<usize>)| match channels {
            Some(_) => is_full(*id, node, self.draft),
            None => is_number(*id, self.draft),
        };
        let alike = ids().zip(inputs).all(fits);
        let image = || ids().zip(inputs).find(|(_, channels)| channels.is_some()).map(|(id, _)| *id);
        match kind {
            Kind::Joined(operator) => {
                let (_, before) = inputs.split_last()?;
                let whole = |channels: &Option<usize>| channels.is_some_and(|channels| channels % CHANNELS == 0);
                (inputs.iter().all(Option::is_some) && before.iter().all(whole)).then_some(How::Same(operator))
            }
            Kind::Rowwise(operator) if alike => Some(How::Same(operator)),
            Kind::Rowwise(operator) => {
                let image = image()?;
                let gate = *ids().find(|id| **id != image)?;
                let is_gate = inputs.len() == 2 && is_full(image, node, self.draft) && self.is_gate(gate, image);
                is_gate.then_some(How::Gated(operator))
            }
            Kind::Chain(chain) if alike => Some(How::Chain(chain)),
            Kind::Chain(chain) => {
                let image = image()?;
                let is_own = |id: Id| fact(id, self.draft).is_some_and(is_float) && self.is_gate(id, image);
                let suits =
                    |(id, channels): (&Id, &Option<usize>)| fits((id, channels)) || channels.is_none() && is_own(*id);
                let whole = |k: usize| inputs.get(k).is_some_and(Option::is_some);
                (ids().zip(inputs).all(suits) && chain.reads(whole)).then_some(How::GatedChain(chain))
            }
            Kind::Bytes(rows) => {
                // Scales and zero points follow.
                let mut own = ids().zip(inputs).take(rows.inputs());
                let full = |(id, channels): (&Id, &Option<usize>)| channels.is_some() && is_full(*id, node, self.draft);
                if own.all(full) {
                    return Some(How::Bytes(rows));
                }
                let (image, _) = ids().zip(inputs).take(rows.inputs()).find(|(_, channels)| channels.is_some())?;
                let gate = ids().take(rows.inputs()).find(|id| *id != image)?;
                let is_gate = rows.inputs() == 2 && is_full(*image, node, self.draft) && self.is_gate(*gate, *image);
                is_gate.then_some(How::GatedBytes(rows))
            }
            Kind::Windows { .. } => None,
        }
    }

    /// Whether there is a number for each channel of an image, in planes: of all images or of each.
    fn is_gate(&self, gate: Id, image: Id) -> bool {
        let (Some(gate), Some(of)) = (fact(gate, self.draft), fact(image, self.draft)) else { return false };
        let (Some(dims), Some([all, own, image @ ..])) = (gate.dims(), of.dims()) else { return false };
        let one = Dim::Fixed(1);
        let Some((before, ones)) = dims.len().checked_sub(image.len()).map(|at| dims.split_at(at)) else {
            return false;
        };
        let fits = match before {
            [channels] => channels == own,
            [images, channels] => channels == own && (*images == one || images == all && *images != Dim::Unknown),
            _ => false,
        };
        (is_float(gate) || is_byte(gate)) && fits && ones.iter().all(|dim| *dim == one)
    }

    fn channels(&self, id: Id) -> Option<usize> {
        self.blocks.get(id.at()).copied().flatten()
    }

    fn is(&self, values: &[bool], id: Id) -> bool {
        values.get(id.at()) == Some(&true)
    }
}

/// Whether an input has the shape of the output.
fn is_full(id: Id, node: &DraftNode, draft: &Draft) -> bool {
    let dims = |id: Id| fact(id, draft).and_then(Fact::dims);
    let of = node.outputs.first().copied().flatten().and_then(dims);
    of.is_some_and(|of| !of.contains(&Dim::Unknown)) && dims(id) == of
}

/// Whether a value of float32 has one element, and no more axes than an image.
fn is_number(id: Id, draft: &Draft) -> bool {
    let dims = fact(id, draft).filter(|fact| is_float(fact)).and_then(Fact::dims);
    dims.is_some_and(|dims| dims.len() <= 4 && dims.iter().all(|dim| *dim == Dim::Fixed(1)))
}

fn is_byte(fact: &Fact) -> bool {
    matches!(fact.value_type().and_then(ValueType::dtype), Some(DType::Int8 | DType::Uint8))
}

fn is_float(fact: &Fact) -> bool {
    fact.value_type().and_then(ValueType::dtype) == Some(DType::Float)
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::error::{Kind, Result};
    use crate::graph::passes::testing::run;
    use crate::graph::testing::{self, Builder, load};
    use crate::graph::{Draft, Graph, NodeInfo, Slots, Watch};
    use crate::limits::Limits;
    use crate::operator::{Attribute, Context, Feeds};
    use crate::ops::testing::tensor;
    use crate::value::{Dim, Fact, Value};
    use kernels::gemm::blocks::pays;

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|at| (at * 7 % 23) as f32 / 8.0 - 1.3).collect()
    }

    fn constant(builder: &mut Builder, name: &str, shape: &[usize]) {
        let id = builder.id(name);
        let value = tensor(shape, numbers(shape.iter().product()));
        builder.draft.constant(id, Fact::constant(value), None);
    }

    fn ints(name: &str, list: &[i64]) -> (String, Attribute) {
        (name.to_string(), Attribute::Ints(list.to_vec()))
    }

    /// `y = conv(x)` with filters of a shape, a bias, and padding that keeps the size of odd windows.
    fn convolve(builder: &mut Builder, x: &str, filters: impl AsRef<[usize]>, group: i64, stride: i64, y: &str) {
        let filters = filters.as_ref();
        let (w, b) = (format!("{y}.w"), format!("{y}.b"));
        constant(builder, &w, filters);
        constant(builder, &b, &filters[..1]);
        let pads: Vec<i64> = filters[2..].iter().map(|size| (size / 2) as i64).collect();
        let group = ("group".to_string(), Attribute::Int(group));
        let attributes =
            vec![ints("pads", &pads.repeat(2)), ints("strides", &[stride].repeat(filters.len() - 2)), group];
        builder.op_with("Conv", attributes, &[x, &w, &b], y);
    }

    /// Checks that a network of blocks gives the bits of the plain one for some numbers of images, whose shapes follow, watched or
    /// not; and which of its nodes read and give blocks.
    fn check(draft: &dyn Fn() -> Draft, images: &[usize], shapes: &[&[usize]], want: &[&str]) {
        let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
        for images in images {
            let feed = |shape: &&[usize]| {
                tensor(&[&[*images], *shape].concat(), numbers(images * shape.iter().product::<usize>()))
            };
            let feeds: Vec<Value> = shapes.iter().map(feed).collect();
            let want = run(&plain, &feeds, None);
            assert_eq!(run(&graph, &feeds, None), want);
            assert_eq!(run(&graph, &feeds, Some(&mut Seen::default())), want);
        }
        assert_eq!(laid(&graph), if pays() { want } else { &[] });
    }

    /// A network with what convolutional networks have: a stem, a pool, channels alone, gates, residual sums, channels that
    /// are joined, numbers that are added, outputs from the middle, and nodes that read planes.
    fn network() -> Draft {
        let mut builder = Builder::new();
        let dims = [Dim::Symbol("N".into()), Dim::Fixed(3), Dim::Fixed(13), Dim::Fixed(11)];
        builder.shaped("x", Some(DType::Float.into()), Some(dims.to_vec()));
        convolve(&mut builder, "x", [20, 3, 3, 3], 1, 2, "stem");
        builder.op("Relu", &["stem"], "stem.relu");
        let pool = vec![ints("kernel_shape", &[3, 3]), ints("pads", &[1, 1, 1, 1])];
        builder.op_with("MaxPool", pool, &["stem.relu"], "pool");
        convolve(&mut builder, "pool", [20, 1, 5, 5], 20, 1, "alone");
        builder.op("HardSwish", &["alone"], "alone.swish");
        builder.op("GlobalAveragePool", &["alone.swish"], "mean");
        convolve(&mut builder, "mean", [20, 20, 1, 1], 1, 1, "squeeze");
        builder.op("Sigmoid", &["squeeze"], "gate");
        builder.op("Mul", &["gate", "alone.swish"], "gated");
        // A gate, and what follows it in the same pass.
        for (name, value) in [("own", "alone.swish"), ("own.planes", "pool")] {
            builder.op("Mul", &[value, "gate"], &format!("{name}.product"));
            builder.op("Add", &[&format!("{name}.product"), "pool"], &format!("{name}.sum"));
            builder.op("Relu", &[&format!("{name}.sum")], &format!("{name}.activated"));
        }
        convolve(&mut builder, "own.activated", [16, 20, 1, 1], 1, 1, "of.activated");
        convolve(&mut builder, "gated", [20, 20, 1, 1], 1, 1, "back");
        builder.op("Add", &["back", "pool"], "residual");
        convolve(&mut builder, "residual", [32, 20, 3, 3], 1, 1, "wide");
        constant(&mut builder, "half", &[1]);
        builder.op("Add", &["wide", "half"], "more");
        builder.op("Mul", &["more", "wide"], "square");
        convolve(&mut builder, "residual", [17, 20, 1, 1], 1, 1, "narrow");
        builder.op_with("Concat", vec![("axis".to_string(), Attribute::Int(1))], &["square", "narrow"], "both");
        convolve(&mut builder, "both", [9, 49, 1, 1], 1, 1, "last");
        // What is between these is never whole in memory.
        convolve(&mut builder, "pool", [40, 20, 1, 1], 1, 1, "spread");
        builder.op("HardSwish", &["spread"], "spread.swish");
        convolve(&mut builder, "spread.swish", [40, 1, 3, 3], 40, 2, "apart");
        builder.op("Relu", &["apart"], "apart.relu");
        convolve(&mut builder, "apart.relu", [8, 40, 1, 1], 1, 1, "together");
        // Groups that share blocks have none.
        convolve(&mut builder, "gated", [10, 10, 1, 1], 2, 1, "groups");
        builder.op_with("Transpose", vec![ints("perm", &[0, 2, 3, 1])], &["wide"], "turned");
        let pool = vec![ints("kernel_shape", &[2, 2])];
        builder.op_with("MaxPool", pool, &["gated"], "small");
        let flag = |name: &str| (name.to_string(), Attribute::Int(1));
        let pool = vec![
            ints("kernel_shape", &[3, 2]),
            ints("strides", &[2, 1]),
            ints("pads", &[1, 0, 1, 1]),
            flag("ceil_mode"),
            flag("count_include_pad"),
        ];
        builder.op_with("AveragePool", pool, &["gated"], "average");
        convolve(&mut builder, "average", [8, 20, 1, 1], 1, 1, "after");
        for (name, operator) in [("whole.mean", "AveragePool"), ("whole.greatest", "MaxPool")] {
            builder.op_with(operator, vec![ints("kernel_shape", &[7, 6])], &["gated"], name);
        }
        convolve(&mut builder, "whole.mean", [8, 20, 1, 1], 1, 1, "of.whole");
        let numbers = ["scale", "bias", "given.mean", "variance"];
        numbers.iter().for_each(|name| constant(&mut builder, name, &[20]));
        let epsilon = vec![("epsilon".to_string(), Attribute::Float(2.0))];
        let inputs: Vec<&str> = ["gated"].into_iter().chain(numbers).collect();
        builder.op_with("BatchNormalization", epsilon, &inputs, "normed");
        convolve(&mut builder, "normed", [8, 20, 1, 1], 1, 1, "of.normed");
        // What kernels of convolutions finish, in registers or as soon as sums are written.
        convolve(&mut builder, "gated", [20, 20, 3, 3], 1, 1, "sum");
        builder.op("Add", &["pool", "sum"], "sum.more");
        builder.op("Relu", &["sum.more"], "sum.relu");
        for (name, value) in [("low", -0.5f32), ("high", 1.5)] {
            builder.constant(name, tensor(&[], [value]));
        }
        convolve(&mut builder, "sum.relu", [24, 20, 1, 1], 1, 1, "limited");
        builder.op("Clip", &["limited", "low", "high"], "limited.clip");
        convolve(&mut builder, "limited.clip", [24, 1, 3, 3], 24, 1, "own");
        builder.op("Sigmoid", &["own"], "own.sigmoid");
        builder.op("Mul", &["own.sigmoid", "own"], "own.gated");
        convolve(&mut builder, "own.gated", [8, 24, 1, 1], 1, 1, "finished");
        for name in [
            "own.planes.activated",
            "of.activated",
            "whole.greatest",
            "of.whole",
            "small",
            "residual",
            "turned",
            "groups",
            "mean",
            "together",
            "after",
            "of.normed",
            "finished",
        ] {
            builder.output_named(name);
        }
        builder.output("last")
    }

    fn feed(images: usize) -> [Value; 1] {
        [tensor(&[images, 3, 13, 11], numbers(images * 3 * 13 * 11))]
    }

    /// The nodes with values in blocks, as a whole.
    fn laid(graph: &Graph) -> Vec<String> {
        let runs = graph.nodes.iter().filter_map(|node| match &node.operator {
            crate::graph::Runs::Fused(fused) => fused.operator.layout().map(|layout| (node, layout)),
            _ => None,
        });
        runs.map(|(node, layout)| {
            let form = |channels: &Option<usize>| if channels.is_some() { 'b' } else { 'p' };
            let inputs: String = layout.inputs.iter().map(form).collect();
            format!("{} {inputs}>{}", node.place.name, form(&layout.output))
        })
        .collect()
    }

    #[test]
    fn no_bit_changes() {
        let (graph, plain) = (load(network(), true).unwrap(), load(network(), false).unwrap());
        for images in [0, 1, 2] {
            let want = run(&plain, &feed(images), None);
            assert_eq!(run(&graph, &feed(images), None), want);
            assert_eq!(run(&graph, &feed(images), Some(&mut Seen::default())), want);
            assert_eq!(run(&graph, &feed(images), Some(&mut Seen { whole: true, ..Seen::default() })), want);
        }
        if pays() {
            // Values in blocks and in planes, by node.
            let want = [
                "stem.relu ppp>b",
                "pool b>b",
                "alone.swish bpp>b",
                "mean b>p",
                "gated pb>b",
                "own.activated bpb>b",
                "own.planes.activated bp>p",
                "of.activated bpp>p",
                "residual bppb>p",
                "wide ppp>b",
                "square bp>b",
                "narrow ppp>b",
                "both bb>b",
                "last bpp>p",
                "apart.relu bpppp>b",
                "together bpp>p",
                "groups bpp>p",
                "turned b>p",
                "small b>p",
                "average b>b",
                "after bpp>p",
                "whole.mean b>p",
                "whole.greatest b>p",
                "normed bpppp>b",
                "of.normed bpp>p",
                "sum.relu bppb>b",
                "own.gated bpppp>b",
                "finished bpp>p",
            ];
            assert_eq!(laid(&graph), want);
            let apart = graph.node_infos().find(|node| node.name == "apart.relu").unwrap();
            let parts: Vec<&str> = apart.parts().map(|part| part.name).collect();
            assert_eq!(parts, ["spread", "spread.swish", "apart", "apart.relu"]);
        }
    }

    /// As [`convolve`], along one axis.
    fn convolve_row(builder: &mut Builder, x: &str, filters: [usize; 3], group: i64, stride: i64, y: &str) {
        let (w, b) = (format!("{y}.w"), format!("{y}.b"));
        constant(builder, &w, &filters);
        constant(builder, &b, &filters[..1]);
        let pads = ints("pads", &[(filters[2] / 2) as i64; 2]);
        let group = ("group".to_string(), Attribute::Int(group));
        builder.op_with("Conv", vec![pads, ints("strides", &[stride]), group], &[x, &w, &b], y);
    }

    /// Images of one axis are in blocks from a convolution to the next; other operators see planes.
    #[test]
    fn images_of_a_row() {
        let draft = || {
            let mut builder = Builder::new();
            let dims = [Dim::Symbol("N".into()), Dim::Fixed(5), Dim::Fixed(301)];
            builder.shaped("x", Some(DType::Float.into()), Some(dims.to_vec()));
            convolve_row(&mut builder, "x", [20, 5, 4], 1, 1, "stem");
            builder.op("Relu", &["stem"], "stem.relu");
            convolve_row(&mut builder, "stem.relu", [20, 1, 5], 20, 2, "alone");
            builder.op("HardSwish", &["alone"], "alone.swish");
            convolve_row(&mut builder, "alone.swish", [20, 20, 3], 1, 1, "dense");
            builder.op("Add", &["dense", "alone.swish"], "residual");
            builder.op("Neg", &["alone.swish"], "negated");
            builder.op("Tanh", &["negated"], "curved");
            builder.op_with("Transpose", vec![ints("perm", &[0, 2, 1])], &["curved"], "turned");
            constant(&mut builder, "gate", &[20, 1]);
            builder.op("Mul", &["alone.swish", "gate"], "gated");
            convolve_row(&mut builder, "residual", [8, 20, 1], 1, 1, "last");
            builder.op_with("MaxPool", vec![ints("kernel_shape", &[2])], &["alone.swish"], "pool");
            builder.op_with("Concat", vec![("axis".to_string(), Attribute::Int(1))], &["alone.swish", "alone"], "both");
            ["turned", "gated", "pool", "both"].iter().for_each(|name| builder.output_named(name));
            builder.output("last")
        };
        let want = [
            "stem.relu ppp>b",
            "alone bpp>b",
            "alone.swish b>b",
            "residual bppb>b",
            "curved b>p",
            "gated bp>p",
            "last bpp>p",
            "pool b>p",
            "both bb>p",
        ];
        check(&draft, &[0, 1, 2, 20], &[&[5, 301]], &want);
    }

    /// Factors and addends of channels after convolutions, as constants and as inputs: with residual sums, functions, neither; in
    /// front of what reads planes, or reads sums twice.
    #[test]
    fn channels_are_scaled() {
        let draft = || {
            let mut builder = Builder::new();
            let images = [Dim::Symbol("N".into()), Dim::Fixed(20), Dim::Fixed(13), Dim::Fixed(11)];
            builder.shaped("x", Some(DType::Float.into()), Some(images.to_vec()));
            builder.shaped("each", Some(DType::Float.into()), Some([&images[..2], &[1, 1].map(Dim::Fixed)].concat()));
            for (name, shape) in [("factors", &[1, 20, 1, 1][..]), ("addends", &[20, 1, 1])] {
                constant(&mut builder, name, shape);
            }
            let axis = builder.id("axis");
            builder.draft.constant(axis, Fact::constant(tensor(&[1], [0i64])), None);
            builder.op("ReduceSum", &["each", "axis"], "given");
            let plain = |builder: &mut Builder, x: &str, filters: [usize; 4], y: &str| {
                let w = format!("{y}.w");
                constant(builder, &w, &filters);
                let group = ("group".to_string(), Attribute::Int(20 / filters[1] as i64));
                builder.op_with("Conv", vec![ints("pads", &[filters[2] as i64 / 2; 4]), group], &[x, &w], y);
            };
            plain(&mut builder, "x", [20, 20, 3, 3], "a");
            builder.op("Mul", &["factors", "a"], "a.scaled");
            builder.op("Add", &["a.scaled", "addends"], "a.sum");
            builder.op("Relu", &["a.sum"], "a.relu");
            plain(&mut builder, "a.relu", [20, 1, 3, 3], "b");
            builder.op("Mul", &["b", "factors"], "b.scaled");
            builder.op("Add", &["given", "b.scaled"], "b.sum");
            builder.op("Sigmoid", &["b.sum"], "b.sigmoid");
            builder.op("Mul", &["b.sum", "b.sigmoid"], "b.silu");
            plain(&mut builder, "b.silu", [20, 4, 1, 1], "c");
            builder.op("Add", &["c", "addends"], "c.sum");
            plain(&mut builder, "c.sum", [20, 20, 1, 1], "d");
            builder.op("Mul", &["d", "given"], "d.scaled");
            plain(&mut builder, "d.scaled", [20, 20, 3, 3], "e");
            builder.op("Mul", &["e", "factors"], "e.scaled");
            builder.op("Add", &["a.relu", "e.scaled"], "e.sum");
            convolve(&mut builder, "e.sum", [20, 20, 1, 1], 1, 1, "f");
            builder.op("Mul", &["f", "factors"], "f.scaled");
            builder.op("Add", &["f.scaled", "addends"], "f.added");
            builder.op("Add", &["f.added", "c.sum"], "f.sum");
            builder.op("Relu", &["f.sum"], "f.relu");
            builder.op("Neg", &["f.relu"], "negated");
            // What isn't scaled as a whole, or by numbers of each image.
            plain(&mut builder, "e.sum", [20, 20, 1, 1], "twice");
            builder.op("Mul", &["twice", "factors"], "twice.scaled");
            builder.op("Add", &["twice.scaled", "twice"], "twice.sum");
            plain(&mut builder, "e.sum", [20, 20, 1, 1], "own");
            builder.op("Mul", &["own", "each"], "own.scaled");
            builder.op("Add", &["own.scaled", "addends"], "own.sum");
            ["twice.sum", "own.sum"].iter().for_each(|name| builder.output_named(name));
            builder.output("negated")
        };
        let want = [
            "a.relu pppp>b",
            "b.sum bppp>b",
            "b.silu b>b",
            "c.sum bpp>b",
            "d.scaled bpp>b",
            "e.sum bppb>b",
            "negated bppppb>p",
            "twice bp>b",
            "twice.sum bp>p",
            "own bp>b",
            "own.sum bpp>p",
        ];
        check(&draft, &[0, 1, 2], &[&[20, 13, 11], &[20, 1, 1]], &want);
    }

    /// Images of other sizes: of channels that fill blocks even if they are in planes before.
    #[test]
    fn other_sizes() {
        let draft = || {
            let mut builder = Builder::new();
            for (name, channels) in [("few", 20), ("x", 32)] {
                let dims = [Dim::Symbol("N".into()), Dim::Fixed(channels), Dim::Fixed(5), Dim::Fixed(7)];
                builder.shaped(name, Some(DType::Float.into()), Some(dims.to_vec()));
            }
            let scales: [f32; 4] = [1.0, 1.0, 2.0, 1.5];
            for (name, value) in [
                ("scales", tensor(&[4], scales)),
                ("two", tensor(&[2], [2f32, 1.5])),
                ("sizes", tensor(&[2], [10i64, 10])),
                ("other", tensor(&[4], [1i64, 32, 4, 3])),
            ] {
                builder.constant(name, value);
            }
            let mode = |name: &str| ("mode".to_string(), Attribute::String(name.into()));
            let axes = || ints("axes", &[2, -1]);
            builder.op_with("Resize", vec![mode("linear")], &["x", "", "scales"], "of.planes");
            builder.op_with("Resize", vec![], &["few", "", "scales"], "of.few");
            convolve(&mut builder, "of.few", [16, 20, 3, 3], 1, 1, "after.few");
            convolve(&mut builder, "x", [32, 32, 3, 3], 1, 1, "stem");
            builder.op_with("Resize", vec![mode("cubic"), axes()], &["stem", "", "", "sizes"], "of.blocks");
            builder.op_with("Resize", vec![axes()], &["stem", "", "two"], "nearest");
            builder.op_with("Resize", vec![], &["stem", "", "", "other"], "of.one");
            let joined = ["of.planes", "of.blocks", "nearest", "after.few"];
            builder.op_with("Concat", vec![("axis".to_string(), Attribute::Int(1))], &joined, "joined");
            convolve(&mut builder, "joined", [8, 112, 1, 1], 1, 1, "last");
            convolve(&mut builder, "of.one", [16, 32, 1, 1], 1, 1, "small");
            builder.op_with("Resize", vec![], &["last", "", "scales"], "whole");
            ["small", "whole"].iter().for_each(|name| builder.output_named(name));
            builder.output("last")
        };
        let want = [
            "of.planes pp>b",
            "after.few ppp>b",
            "stem ppp>b",
            "of.blocks bp>b",
            "nearest bp>b",
            "of.one bp>b",
            "joined bbbb>b",
            "last bpp>p",
            "small bpp>p",
        ];
        // Of two images, one of the nodes makes one.
        check(&draft, &[1, 2], &[&[20, 5, 7], &[32, 5, 7]], &want);
    }

    /// One of the transforms gives axes other entries that keep their sizes.
    #[test]
    fn a_transform_of_all_axes() {
        let draft = || {
            let mut builder = Builder::new();
            let dims = [1, 16, 2, 3].map(Dim::Fixed).to_vec();
            builder.shaped("x", Some(DType::Float.into()), Some(dims));
            builder.constant("scales", tensor(&[4], [1f32, 1.0, 2.0, 2.0]));
            convolve(&mut builder, "x", [16, 16, 1, 1], 1, 1, "stem");
            let text = |name: &str, value: &str| (name.to_string(), Attribute::String(value.into()));
            let transform = text("coordinate_transformation_mode", "tf_half_pixel_for_nn");
            builder.op_with("Resize", vec![text("mode", "linear"), transform], &["stem", "", "scales"], "moved");
            convolve(&mut builder, "moved", [16, 16, 1, 1], 1, 1, "last");
            builder.output("last")
        };
        let feeds = [tensor(&[1, 16, 2, 3], (0..96).map(|k| k as f32).collect::<Vec<_>>())];
        let [got, want] = [true, false].map(|optimize| run(&load(draft(), optimize).unwrap(), &feeds, None));
        assert_eq!(got, want);
    }

    /// Images with three axes or one, in all nodes that know these.
    #[test]
    fn other_ranks() {
        let want = [
            "stem ppp>b",
            "wide bpp>b",
            "pool b>b",
            "normed bpppp>b",
            "alone bpp>b",
            "mean b>b",
            "of.places bp>p",
            "global b>p",
            "gated bp>b",
            "sum bb>b",
            "both bb>b",
            "last bpp>p",
        ];
        let cases: [(&[usize], &[usize]); 2] = [(&[7, 9, 10], &[3, 1, 1]), (&[37], &[5])];
        for (image, wide) in cases {
            let axes = image.len();
            let draft = || {
                let mut builder = Builder::new();
                let dims = [Dim::Symbol("N".into()), Dim::Fixed(3)];
                let dims = dims.into_iter().chain(image.iter().copied().map(Dim::Fixed)).collect();
                builder.shaped("x", Some(DType::Float.into()), Some(dims));
                let windows = |filters: [usize; 2], size: usize| [&filters[..], &vec![size; axes]].concat();
                convolve(&mut builder, "x", windows([20, 3], 3), 1, 2, "stem");
                convolve(&mut builder, "stem", [&[32, 20], wide].concat(), 1, 1, "wide");
                let each = |size: i64| vec![size; axes];
                let pool = vec![ints("kernel_shape", &each(3)), ints("pads", &each(1).repeat(2))];
                builder.op_with("MaxPool", pool, &["wide"], "pool");
                let numbers = ["scale", "bias", "given.mean", "variance"];
                numbers.iter().for_each(|name| constant(&mut builder, name, &[32]));
                let inputs: Vec<&str> = ["pool"].into_iter().chain(numbers).collect();
                builder.op_with(
                    "BatchNormalization",
                    vec![("epsilon".into(), Attribute::Float(2.0))],
                    &inputs,
                    "normed",
                );
                convolve(&mut builder, "normed", windows([32, 1], 3), 32, 1, "alone");
                let pool = vec![
                    ints("kernel_shape", &each(2)),
                    ints("pads", &[each(1), each(0)].concat()),
                    ("count_include_pad".to_string(), Attribute::Int(1)),
                ];
                builder.op_with("AveragePool", pool, &["alone"], "mean");
                let reduced = builder.id("reduced");
                let axes = tensor(&[axes], (2..2 + axes as i64).collect::<Vec<i64>>());
                builder.draft.constant(reduced, Fact::constant(axes), None);
                builder.op("ReduceMean", &["mean", "reduced"], "of.places");
                builder.op("GlobalMaxPool", &["mean"], "global");
                builder.op("Mul", &["mean", "of.places"], "gated");
                builder.op("Add", &["mean", "mean"], "sum");
                builder.op_with("Concat", vec![("axis".to_string(), Attribute::Int(1))], &["gated", "sum"], "both");
                convolve(&mut builder, "both", windows([7, 64], 1), 1, 1, "last");
                ["global", "of.places"].iter().for_each(|name| builder.output_named(name));
                builder.output("last")
            };
            check(&draft, &[0, 1, 2], &[&[&[3], image].concat()], &want);
        }
    }

    /// Images that filters are spread over, from planes and from blocks, in blocks and in planes.
    #[test]
    fn spread_images() {
        let draft = || {
            let mut builder = Builder::new();
            let dims = [Dim::Symbol("N".into()), Dim::Fixed(32), Dim::Fixed(5), Dim::Fixed(7)];
            builder.shaped("x", Some(DType::Float.into()), Some(dims.to_vec()));
            let mut spread = |x: &str, filters: [usize; 4], attributes: Vec<(String, Attribute)>, y: &str| {
                let (w, b) = (format!("{y}.w"), format!("{y}.b"));
                constant(&mut builder, &w, &filters);
                constant(&mut builder, &b, &filters[1..2]);
                builder.op_with("ConvTranspose", attributes, &[x, &w, &b], y);
                builder.op("Relu", &[y], &format!("{y}.relu"));
            };
            let two = || ints("strides", &[2, 2]);
            spread("x", [32, 30, 4, 4], vec![two(), ints("pads", &[1; 4])], "first");
            spread("first.relu", [30, 16, 2, 2], vec![two()], "twice");
            let sized = vec![ints("output_shape", &[24, 31]), ints("strides", &[2, 3]), ints("dilations", &[3, 1])];
            spread("first.relu", [30, 16, 3, 2], sized, "sized");
            // Few filters leave most of a vector empty.
            spread("twice.relu", [16, 3, 3, 3], vec![ints("pads", &[0, 1, 2, 1])], "few");
            builder.output_named("sized.relu");
            builder.output("few.relu")
        };
        let want = ["first ppp>b", "first.relu b>b", "twice bpp>b", "twice.relu b>p", "sized bpp>b", "sized.relu b>p"];
        check(&draft, &[0, 1, 2], &[&[32, 5, 7]], &want);
        // The pads leave nothing of the output: as on planes.
        let draft = || {
            let mut builder = Builder::new();
            let dims = [1, 16].map(Dim::Fixed).into_iter().chain(["H", "W"].map(|name| Dim::Symbol(name.into())));
            builder.shaped("x", Some(DType::Float.into()), Some(dims.collect()));
            constant(&mut builder, "w", &[16, 16, 2, 2]);
            builder.op_with("ConvTranspose", vec![ints("pads", &[1; 4])], &["x", "w"], "y");
            builder.output("y")
        };
        for sizes in [[1, 1], [2, 3], [0, 3]] {
            let feeds = [tensor(&[1, 16, sizes[0], sizes[1]], numbers(16 * sizes[0] * sizes[1])).into()];
            let outcome = |optimize| {
                let (graph, context) = (load(draft(), optimize).unwrap(), Context::new(1, Limits::default()));
                let mut slots = Slots::default();
                let ran = graph.run(Feeds::Own(&feeds), &mut slots, &context, None);
                ran.map(|()| graph.take(0, Feeds::Own(&feeds), &mut slots).unwrap()).map_err(|error| error.to_string())
            };
            assert_eq!(outcome(true), outcome(false), "{sizes:?}");
        }
    }

    /// What a watch sees: names and values of outputs.
    #[derive(Default)]
    struct Seen {
        whole: bool,
        values: Vec<(String, Value)>,
    }

    impl Watch for Seen {
        fn whole(&self) -> bool {
            self.whole
        }

        fn ends(&mut self, _: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> Result<()> {
            self.values.extend(outputs.iter().map(|(name, value)| (name.to_string(), (*value).clone())));
            Ok(())
        }
    }

    /// Filters with nothing in blocks around them: single places need more of these, and a channel by itself many taps.
    #[test]
    fn filters_that_stand_alone() {
        for (filters, group, want) in [
            ([17, 1, 5, 5], 17, &["y ppp>p"][..]),
            ([9, 17, 3, 3], 1, &["y ppp>p"]),
            ([9, 17, 1, 1], 1, &[]),
            ([17, 17, 1, 1], 1, &["y ppp>p"]),
            ([48, 16, 3, 3], 3, &["y ppp>p"]),
            ([34, 17, 3, 3], 2, &[]),
            // Groups that share a block, with more steps than pay to be picked.
            ([96, 8, 5, 5], 12, &["y ppp>p"]),
            ([84, 4, 7, 7], 21, &["y ppp>p"]),
        ] {
            stand_alone(filters, group, want);
        }
    }

    fn stand_alone(filters: [usize; 4], group: i64, want: &[&str]) {
        let channels = filters[1] * group as usize;
        let draft = || {
            let mut builder = Builder::new();
            let dims = [Dim::Symbol("N".into()), Dim::Fixed(channels), Dim::Fixed(9), Dim::Fixed(40)];
            builder.shaped("x", Some(DType::Float.into()), Some(dims.to_vec()));
            convolve(&mut builder, "x", filters, group, 2, "conv");
            builder.op("Sigmoid", &["conv"], "y");
            builder.output("y")
        };
        check(&draft, &[0, 1, 2], &[&[channels, 9, 40]], want);
    }

    /// Two convolutions that are one give planes to what reads these.
    #[test]
    fn windows_of_lines_end_in_planes() {
        for (channels, kernel) in [(16, 5), (20, 7)] {
            let draft = || {
                let mut builder = Builder::new();
                let dims = [Dim::Symbol("N".into()), Dim::Fixed(3), Dim::Fixed(9), Dim::Fixed(40)];
                builder.shaped("x", Some(DType::Float.into()), Some(dims.to_vec()));
                convolve(&mut builder, "x", [channels, 3, 3, 3], 1, 1, "stem");
                convolve(&mut builder, "stem", [channels, channels, 1, 1], 1, 1, "wide");
                convolve(&mut builder, "wide", [channels, 1, kernel, kernel], channels as i64, 1, "y");
                builder.output("y")
            };
            check(&draft, &[0, 1, 2], &[&[3, 9, 40]], &["stem ppp>b", "y bpppp>p"]);
        }
    }

    /// Pools with nothing in blocks around them: of few channels most of a vector would be empty.
    #[test]
    fn pools_that_stand_alone() {
        for (channels, kernel, want) in
            [(17, [3, 3], &["y p>p"][..]), (16, [2, 1], &["y p>p"]), (4, [3, 3], &["y p>p"]), (3, [3, 3], &[])]
        {
            for (name, dtype) in [("MaxPool", DType::Float), ("AveragePool", DType::Float), ("MaxPool", DType::Int8)] {
                let draft = || {
                    let mut builder = Builder::new();
                    let dims = [Dim::Symbol("N".into()), Dim::Fixed(channels), Dim::Fixed(9), Dim::Fixed(40)];
                    builder.shaped("x", Some(dtype.into()), Some(dims.to_vec()));
                    let pads = ints("pads", &[0, 0, kernel[0] - 1, kernel[1] - 1]);
                    builder.op_with(name, vec![ints("kernel_shape", &kernel), pads], &["x"], "y");
                    builder.output("y")
                };
                let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
                for images in [0, 1, 2] {
                    let (shape, all) = ([images, channels, 9, 40], numbers(images * channels * 360));
                    let x = match dtype {
                        DType::Float => tensor(&shape, all),
                        _ => tensor(&shape, all.iter().map(|number| (number * 40.0) as i8).collect::<Vec<i8>>()),
                    };
                    assert_eq!(
                        run(&graph, std::slice::from_ref(&x), None),
                        run(&plain, std::slice::from_ref(&x), None)
                    );
                }
                // The greatest of few channels take less on planes.
                let stays = name == "MaxPool" && channels < 16;
                assert_eq!(laid(&graph), if pays() && !stays { want } else { &[] }, "{name} of {channels} {dtype}");
            }
        }
    }

    /// A bias that is fed, and of which nothing is known before, is refused as without blocks.
    #[test]
    fn biases_that_are_fed() {
        let draft = || {
            let mut builder = Builder::new();
            let dims = [1, 20, 6, 6].map(Dim::Fixed);
            builder.shaped("x", Some(DType::Float.into()), Some(dims.to_vec()));
            builder.input_of("b", Some(DType::Float.into()));
            builder.input_of("own", Some(DType::Float.into()));
            convolve(&mut builder, "x", [20, 20, 3, 3], 1, 1, "stem");
            for (filters, group, [x, bias, y]) in [
                ([40, 20, 1, 1], 1, ["stem", "b", "spread"]),
                ([40, 1, 3, 3], 40, ["spread", "own", "apart"]),
                ([40, 40, 3, 3], 1, ["apart", "b", "y"]),
            ] {
                let w = format!("{y}.w");
                constant(&mut builder, &w, &filters);
                let group = ("group".to_string(), Attribute::Int(group));
                builder.op_with("Conv", vec![group], &[x, &w, bias], y);
            }
            builder.output("y")
        };
        let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
        assert_eq!(laid(&graph), if pays() { &["stem ppp>b", "apart bpppp>b", "y bpp>p"][..] } else { &[] });
        let x = tensor(&[1, 20, 6, 6], numbers(20 * 36));
        for (b, own) in [(40, 40), (1, 40), (40, 1), (41, 40), (40, 39), (0, 40)] {
            let feeds = [x.clone(), tensor(&[b], numbers(b)), tensor(&[own], numbers(own))];
            let outcomes = [&graph, &plain]
                .map(|graph| testing::run(graph, &feeds, None).map_err(|error| (error.kind(), error.to_string())));
            let [outcome, want] = outcomes;
            assert_eq!(outcome, want, "{b}, {own}");
            assert_eq!(want.is_ok(), [b, own] == [40; 2]);
        }
    }

    /// An image without places has padding alone.
    #[test]
    fn no_places() {
        for (filters, group) in [([17, 17, 1, 1], 1), ([17, 17, 3, 3], 1), ([17, 1, 5, 5], 17)] {
            let draft = || {
                let mut builder = Builder::new();
                let dims = [2, 17, 3, 0].map(Dim::Fixed);
                builder.shaped("x", Some(DType::Float.into()), Some(dims.to_vec()));
                constant(&mut builder, "w", &filters);
                constant(&mut builder, "b", &[17]);
                let group = ("group".to_string(), Attribute::Int(group));
                builder.op_with("Conv", vec![ints("pads", &[2, 3, 2, 3]), group], &["x", "w", "b"], "conv");
                builder.op("Relu", &["conv"], "y");
                builder.output("y")
            };
            let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
            let feeds = [tensor(&[2, 17, 3, 0], numbers(0))];
            assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None), "{filters:?}");
        }
    }

    #[test]
    fn a_watch_sees_planes() {
        let seen = |optimize| {
            let mut seen = Seen::default();
            run(&load(network(), optimize).unwrap(), &feed(2), Some(&mut seen));
            seen.values
        };
        assert_eq!(seen(true), seen(false));
    }

    /// A run that has less memory than blocks take runs on planes, or fails as it must.
    #[test]
    fn little_memory() {
        let (graph, want) = (load(network(), true).unwrap(), run(&load(network(), false).unwrap(), &feed(1), None));
        let mut outcomes = [0, 0];
        for run_bytes in (1..64).map(|step| step * 4096) {
            let limits = Limits { run_bytes, ..Limits::default() };
            let (feeds, mut slots, context) = (feed(1).map(Some), Slots::default(), Context::new(1, limits));
            match graph.run(Feeds::Own(&feeds), &mut slots, &context, None) {
                Ok(()) => {
                    let values: Vec<Value> =
                        (0..want.len()).map(|k| graph.take(k, Feeds::Own(&feeds), &mut slots).unwrap()).collect();
                    assert_eq!(values, want);
                    outcomes[0] += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Limit, "{error}");
                    outcomes[1] += 1;
                }
            }
        }
        assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
    }

    /// What isn't as large as its name says stands beside no sums: nodes run as they are written.
    #[test]
    fn sizes_that_names_do_not_tell() {
        let draft = || {
            let mut builder = Builder::new();
            for name in ["a", "b"] {
                let dims = [1, 16, 4].map(Dim::Fixed).into_iter().chain([Dim::Symbol("W".into())]);
                builder.shaped(name, Some(DType::Float.into()), Some(dims.collect()));
                convolve(&mut builder, name, [16, 16, 1, 1], 1, 1, &format!("{name}.sums"));
            }
            builder.op("Add", &["a.sums", "b.sums"], "sum");
            builder.op("Tanh", &["sum"], "tanh");
            convolve(&mut builder, "tanh", [16, 16, 1, 1], 1, 1, "y");
            builder.output("y")
        };
        let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
        for widths in [[3, 3], [1, 3], [3, 1]] {
            let feeds = widths.map(|width| tensor(&[1, 16, 4, width], numbers(64 * width)));
            assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None), "{widths:?}");
        }
    }
}
