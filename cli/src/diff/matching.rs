//! Matches the nodes of two graphs: by what they compute and by what is computed of it, then by their neighbours and their
//! order. Names decide between equals only.

use super::side::{BODY, Level, Side, hashed};
use onnxref::inspect::NodeDetails;
use std::collections::{HashMap, HashSet, VecDeque};

/// Maximum product of the numbers of nodes whose order is compared.
const MAX_ORDERS: usize = 4_000_000;

/// The nodes and inputs that belong together.
pub(super) struct Matching {
    /// Of each node of A, that of B, and the other way round.
    pub(super) nodes: Vec<Option<usize>>,
    pub(super) back: Vec<Option<usize>>,
    /// The inputs of the graphs, and values captured from outside, by their places.
    pub(super) inputs: HashMap<usize, usize>,
    pub(super) outputs: Vec<(usize, usize)>,
}

impl Matching {
    /// Matches two graphs. `captured` are values from outside that belong together, if they are bodies of nodes: their
    /// inputs and outputs have an order and no names.
    pub(super) fn new(a: &Side<'_>, b: &Side<'_>, captured: Option<&[(usize, usize)]>) -> Matching {
        let (fed_a, fed_b) = (a.inputs(), b.inputs());
        let pairs = |left: &[usize], right: &[usize]| match captured {
            None => ends(a, b, left, right),
            Some(_) => (0..left.len().min(right.len())).map(|k| (k, k)).collect(),
        };
        let (inputs, outputs) = (pairs(&fed_a, &fed_b), pairs(&a.graph.outputs, &b.graph.outputs));
        let mut matching = Matching {
            nodes: vec![None; a.graph.nodes.len()],
            back: vec![None; b.graph.nodes.len()],
            inputs: inputs.iter().map(|(x, y)| (*place(&fed_a, *x), *place(&fed_b, *y))).collect(),
            outputs,
        };
        matching.inputs.extend(captured.into_iter().flatten().copied());
        let key = |k: usize| hashed(("end", k));
        let ka = matching.inputs.keys().map(|x| (*x, key(*x))).collect();
        let kb = matching.inputs.iter().map(|(x, y)| (*y, key(*x))).collect();
        let (mut oa, mut ob): (HashMap<usize, Vec<usize>>, HashMap<usize, Vec<usize>>) = Default::default();
        for (k, (x, y)) in matching.outputs.iter().enumerate() {
            oa.entry(*place(&a.graph.outputs, *x)).or_default().push(k);
            ob.entry(*place(&b.graph.outputs, *y)).or_default().push(k);
        }
        for level in [Level::Exact, Level::Shapes, Level::Operators] {
            matching.by_hash(a, b, &a.down(level, &ka).0, &b.down(level, &kb).0, level);
            matching.by_hash(a, b, &a.up(level, &oa), &b.up(level, &ob), level);
            matching.by_neighbours(a, b);
        }
        for level in [Level::Shapes, Level::Operators] {
            matching.by_order(a, b, level);
            matching.by_neighbours(a, b);
        }
        matching.replaced(a, b);
        matching
    }

    /// Whether two values belong together.
    pub(super) fn same_value(&self, a: &Side<'_>, b: &Side<'_>, x: usize, y: usize) -> bool {
        match (a.producer(x), b.producer(y)) {
            (Some((k, i)), Some((l, j))) => i == j && self.node(k) == Some(l),
            (None, None) => match (a.fixed(x), b.fixed(y)) {
                (Some(x), Some(y)) => x.value().zip(y.value()).is_some_and(|(x, y)| x == y),
                (None, None) => self.inputs.get(&x) == Some(&y),
                _ => false,
            },
            _ => false,
        }
    }

    pub(super) fn node(&self, k: usize) -> Option<usize> {
        self.nodes.get(k).copied().flatten()
    }

    fn pair(&mut self, x: usize, y: usize) {
        if let (Some(to @ None), Some(from @ None)) = (self.nodes.get_mut(x), self.back.get_mut(y)) {
            (*to, *from) = (Some(y), Some(x));
        }
    }

    /// The nodes without a partner.
    fn open(&self, a: &Side<'_>, b: &Side<'_>) -> [Vec<usize>; 2] {
        let of = |side: &Side<'_>, partners: &[Option<usize>]| -> Vec<usize> {
            let open = |k: &usize| side.works.get(*k) == Some(&true) && partners.get(*k) == Some(&None);
            (0..partners.len()).filter(open).collect()
        };
        [of(a, &self.nodes), of(b, &self.back)]
    }

    fn by_hash(&mut self, a: &Side<'_>, b: &Side<'_>, ha: &[u64], hb: &[u64], level: Level) {
        let [left, right] = self.open(a, b);
        let mut groups: HashMap<u64, (Vec<usize>, Vec<usize>)> = HashMap::new();
        let (mut order, at) = (Vec::new(), |hashes: &[u64], k: usize| hashes.get(k).copied().unwrap_or(0));
        for k in left {
            let group = groups.entry(at(ha, k)).or_default();
            if group.0.is_empty() {
                order.push(at(ha, k));
            }
            group.0.push(k);
        }
        for k in right {
            groups.entry(at(hb, k)).or_default().1.push(k);
        }
        for (mut xs, mut ys) in order.iter().filter_map(|hash| groups.remove(hash)) {
            let mut named: HashMap<&str, usize> = HashMap::new();
            ys.iter().for_each(|y| _ = named.entry(name(b, *y)).or_insert(*y));
            xs.retain(|x| {
                let twin = named.get(name(a, *x)).copied().filter(|_| !name(a, *x).is_empty());
                let twin = twin.filter(|twin| self.back.get(*twin) == Some(&None));
                twin.into_iter().for_each(|y| self.pair(*x, y));
                twin.is_none()
            });
            ys.retain(|y| self.back.get(*y) == Some(&None));
            if level == Level::Exact || xs.len() == ys.len() {
                xs.into_iter().zip(ys).for_each(|(x, y)| self.pair(x, y));
            }
        }
    }

    /// What leads to matching nodes, or follows from them, in the only way that is left.
    fn by_neighbours(&mut self, a: &Side<'_>, b: &Side<'_>) {
        let mut queue: Vec<(usize, usize)> =
            self.nodes.iter().enumerate().filter_map(|(k, to)| Some((k, (*to)?))).collect();
        while let Some((x, y)) = queue.pop() {
            let (Some(p), Some(q)) = (a.node(x), b.node(y)) else { continue };
            let before = p.inputs.iter().zip(&q.inputs).filter_map(|(x, y)| {
                let ((x, i), (y, j)) = (a.producer((*x)?)?, b.producer((*y)?)?);
                (i == j).then_some((x, y))
            });
            let after = p.outputs.iter().zip(&q.outputs).flat_map(|(x, y)| {
                let (xs, ys) = (self.readers(a, *x, &self.nodes), self.readers(b, *y, &self.back));
                let pair = |(key, x): (&(u64, usize), &Option<usize>)| (*x).zip(*ys.get(key)?);
                let mut found: Vec<(usize, usize)> = xs.iter().filter_map(pair).collect();
                found.sort_unstable();
                found
            });
            let found: Vec<(usize, usize)> = before.chain(after).collect();
            for (x, y) in found {
                let open = self.nodes.get(x) == Some(&None) && self.back.get(y) == Some(&None);
                if open && kind(a, x) == kind(b, y) {
                    self.pair(x, y);
                    queue.push((x, y));
                }
            }
        }
    }

    /// The nodes without a partner that read a value, by what they are and where; `None` for several that are alike.
    fn readers(&self, side: &Side<'_>, at: Option<usize>, partners: &[Option<usize>]) -> Readers {
        let mut all = Readers::new();
        let readers = at.and_then(|at| side.readers.get(at)).into_iter().flatten();
        for (k, slot) in readers.filter(|(k, slot)| *slot != BODY && partners.get(*k) == Some(&None)) {
            all.entry((kind(side, *k), *slot)).and_modify(|only| *only = None).or_insert(Some(*k));
        }
        all
    }

    /// The values of B that belong to values of A: what bodies read, each with its place inside and outside. Of constants
    /// that are others, those of the same name. A body may read a value several times, as inputs of a function that is called
    /// with it: these have an order.
    pub(super) fn twins(
        &self,
        (a, b): (&Side<'_>, &Side<'_>),
        left: &[(usize, usize)],
        right: &[(usize, usize)],
    ) -> Vec<[(usize, usize); 2]> {
        // What is the same has the same key.
        let of_b = |y: usize| match (b.producer(y), b.content(y)) {
            (Some((k, output)), _) => (Some((k, output)), None, None),
            (None, None) => (None, Some(y), None),
            (None, content) => (None, None, content),
        };
        let of_a = |x: usize| match (a.producer(x), a.content(x)) {
            (Some((k, output)), _) => Some((Some((self.node(k)?, output)), None, None)),
            (None, None) => Some((None, Some(*self.inputs.get(&x)?), None)),
            (None, content) => Some((None, None, content)),
        };
        let (mut known, mut named): (HashMap<_, VecDeque<_>>, HashMap<_, VecDeque<_>>) = Default::default();
        for (inner, outer) in right {
            known.entry(of_b(*outer)).or_default().push_back((*inner, *outer));
            if b.fixed(*outer).is_some() {
                named.entry(value_name(b, *outer)).or_default().push_back((*inner, *outer));
            }
        }
        let twin = |(inner, outer): &(usize, usize)| {
            let same = of_a(*outer).and_then(|key| next(known.get_mut(&key)?));
            let same = same.filter(|(_, y)| self.same_value(a, b, *outer, *y));
            let named = || a.fixed(*outer).and_then(|_| next(named.get_mut(value_name(a, *outer))?));
            let (other, y) = same.or_else(named)?;
            Some([(*inner, other), (*outer, y)])
        };
        left.iter().filter_map(twin).collect()
    }

    /// The longest sequence of nodes that are alike, in the order in which both graphs run.
    fn by_order(&mut self, a: &Side<'_>, b: &Side<'_>, level: Level) {
        let [left, right] = self.open(a, b);
        if left.len().saturating_mul(right.len()) > MAX_ORDERS || left.is_empty() || right.is_empty() {
            return;
        }
        let keys = |side: &Side<'_>, list: &[usize]| -> Vec<u64> { list.iter().map(|k| side.own(*k, level)).collect() };
        let (ka, kb) = (keys(a, &left), keys(b, &right));
        let width = kb.len() + 1;
        let mut table = vec![0u32; (ka.len() + 1) * width];
        let at = |table: &[u32], i: usize, j: usize| table.get(i * width + j).copied().unwrap_or(0);
        for (i, x) in ka.iter().enumerate().rev() {
            for (j, y) in kb.iter().enumerate().rev() {
                let best =
                    if x == y { at(&table, i + 1, j + 1) + 1 } else { at(&table, i + 1, j).max(at(&table, i, j + 1)) };
                table.get_mut(i * width + j).into_iter().for_each(|place| *place = best);
            }
        }
        let (mut i, mut j) = (0, 0);
        while let (Some(x), Some(y)) = (left.get(i), right.get(j)) {
            if ka.get(i) == kb.get(j) {
                self.pair(*x, *y);
                (i, j) = (i + 1, j + 1);
            } else if at(&table, i + 1, j) >= at(&table, i, j + 1) {
                i += 1;
            } else {
                j += 1;
            }
        }
    }

    /// A node in the place of another: it reads the same first value, and the same node reads it.
    fn replaced(&mut self, a: &Side<'_>, b: &Side<'_>) {
        let first = |node: &NodeDetails| node.inputs.first().copied().flatten();
        let [left, right] = self.open(a, b);
        let right: HashSet<usize> = right.into_iter().collect();
        for x in left {
            let Some(p) = a.node(x) else { continue };
            let ends = p.outputs.iter().flatten().flat_map(|at| self.ends(a, b, *at)).collect::<Vec<_>>();
            let place = ends.into_iter().find_map(|at| {
                let (y, _) = b.producer(at).filter(|(y, _)| right.contains(y))?;
                let same = first(p).zip(first(b.node(y)?)).is_some_and(|(x, y)| self.same_value(a, b, x, y));
                (same && self.back.get(y) == Some(&None)).then_some(y)
            });
            if let Some(y) = place {
                self.pair(x, y);
            }
        }
    }

    /// The values of B where a value of A would be, by what reads it.
    fn ends(&self, a: &Side<'_>, b: &Side<'_>, at: usize) -> Vec<usize> {
        let readers = a.readers.get(at).into_iter().flatten().filter(|(_, slot)| *slot != BODY);
        let read = readers.filter_map(|(k, slot)| *b.node(self.node(*k)?)?.inputs.get(*slot)?);
        let outputs = self.outputs.iter().filter(|(x, _)| a.graph.outputs.get(*x) == Some(&at));
        read.chain(outputs.filter_map(|(_, y)| b.graph.outputs.get(*y).copied())).collect()
    }
}

/// Nodes by what they are, and where they read a value.
type Readers = HashMap<(u64, usize), Option<usize>>;

/// Inputs or outputs of the same name; those left by their order, if they are as many.
fn ends(a: &Side<'_>, b: &Side<'_>, left: &[usize], right: &[usize]) -> Vec<(usize, usize)> {
    let mut named = HashMap::new();
    right.iter().enumerate().for_each(|(y, at)| _ = named.entry(value_name(b, *at)).or_insert(y));
    let twin = |(x, at): (usize, &usize)| Some((x, *named.get(value_name(a, *at))?));
    let mut pairs: Vec<(usize, usize)> = left.iter().enumerate().filter_map(twin).collect();
    let open = |count: usize, taken: HashSet<usize>| (0..count).filter(|k| !taken.contains(k)).collect::<Vec<_>>();
    let xs = open(left.len(), pairs.iter().map(|(x, _)| *x).collect());
    let ys = open(right.len(), pairs.iter().map(|(_, y)| *y).collect());
    if xs.len() == ys.len() {
        pairs.extend(xs.into_iter().zip(ys));
    }
    pairs.sort_unstable();
    pairs
}

/// Takes the first value. The last one stays for all that follow.
fn next(values: &mut VecDeque<(usize, usize)>) -> Option<(usize, usize)> {
    if values.len() > 1 { values.pop_front() } else { values.front().copied() }
}

fn place(places: &[usize], k: usize) -> &usize {
    places.get(k).unwrap_or(&usize::MAX)
}

fn kind(side: &Side<'_>, k: usize) -> u64 {
    side.node(k).map_or(0, |node| hashed((&node.domain, &node.operator)))
}

/// The name of a node, or else of the first value that it gives.
fn name<'a>(side: &Side<'a>, k: usize) -> &'a str {
    let Some(node) = side.node(k) else { return "" };
    let first = || node.outputs.first().copied().flatten().map(|at| value_name(side, at));
    if node.name.is_empty() { first().unwrap_or("") } else { &node.name }
}

pub(super) fn value_name<'a>(side: &Side<'a>, at: usize) -> &'a str {
    side.graph.values.get(at).map_or("", |value| &value.name)
}
