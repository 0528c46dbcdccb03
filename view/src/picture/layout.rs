//! Places boxes in layers, from top to bottom, and routes edges between them.
//!
//! A box is one layer below the lowest that it reads. Edges over several layers pass through bends, one a layer, which
//! all edges of a box share. Boxes of a layer are sorted by the mean place of their neighbours, in sweeps down and up;
//! then each moves as near to its neighbours as the others allow.

use std::collections::BTreeMap;

/// The number of sweeps that sort the layers, of those that move boxes, and of those that straighten small pictures.
const SWEEPS: usize = 12;
const MOVES: usize = 24;
const STRAIGHTENING: usize = 150;

/// Maximum number of boxes and bends of a small picture.
const SMALL: usize = 5000;

/// Space between the items of a layer, and between layers.
const GAP: f64 = 24.0;
const LAYER_GAP: f64 = 42.0;

/// Maximum number of bends. Beyond it, edges go straight to their ends.
const MAX_BENDS: usize = 100_000;

/// Space between the arrows that end at a box.
const PORT: f64 = 16.0;

/// Where everything is.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The middle of the upper side of each box.
    pub(super) places: Vec<(f64, f64)>,
    pub(super) pieces: Vec<Piece>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A piece of the edges that leave a box: a curve down from one point to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) source: usize,
    pub(super) from: (f64, f64),
    pub(super) to: (f64, f64),
    /// It ends at a box, with an arrow.
    pub(super) arrow: bool,
}

/// Lays out boxes of the given sizes, with edges between them; some boxes are inputs. Edges that close a cycle point
/// upward.
pub(super) fn layout(sizes: &[(f64, f64)], edges: &[(usize, usize)], inputs: &[bool]) -> Layout {
    let count = sizes.len();
    let edges: Vec<(usize, usize)> =
        edges.iter().copied().filter(|(a, b)| a != b && *a < count && *b < count).collect();
    let layers = layers(count, &edges, inputs);
    let mut sheet = Sheet::new(sizes, &layers);
    edges.iter().for_each(|(from, to)| sheet.connect(*from, *to));
    sheet.sort();
    sheet.place();
    sheet.draw(sizes)
}

/// The layer of each box: below all that it reads. Of a cycle, the first box comes first.
fn layers(count: usize, edges: &[(usize, usize)], inputs: &[bool]) -> Vec<usize> {
    let (mut waiting, mut next) = (vec![0usize; count], vec![Vec::new(); count]);
    for (from, to) in edges {
        change(&mut waiting, *to, |waiting| *waiting += 1);
        change(&mut next, *from, |next: &mut Vec<usize>| next.push(*to));
    }
    let reads: Vec<bool> = waiting.iter().map(|waiting| *waiting > 0).collect();
    let (mut layers, mut done) = (vec![0usize; count], vec![false; count]);
    let mut ready: Vec<usize> = (0..count).filter(|k| !at(&reads, *k)).collect();
    let mut left = 0..count;
    // Once only cycles are left, the first box goes ahead.
    while let Some(k) = ready.pop().or_else(|| left.find(|k| !at(&done, *k))) {
        if at(&done, k) {
            continue;
        }
        change(&mut done, k, |done| *done = true);
        for to in next.get(k).into_iter().flatten().copied().filter(|to| !at(&done, *to)) {
            let below = at(&layers, k) + 1;
            change(&mut layers, to, |layer| *layer = below.max(*layer));
            change(&mut waiting, to, |waiting| *waiting = waiting.saturating_sub(1));
            if at(&waiting, to) == 0 {
                ready.push(to);
            }
        }
    }
    // A box that reads nothing comes right above its first reader, and so does what depends on no input: chains of
    // constants stay together.
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|k| at(&layers, *k));
    let mut depends: Vec<bool> = (0..count).map(|k| at(inputs, k)).collect();
    for k in &order {
        if at(&depends, *k) {
            next.get(*k).into_iter().flatten().for_each(|to| change(&mut depends, *to, |depends| *depends = true));
        }
    }
    for k in order.into_iter().rev().filter(|k| !at(&reads, *k) || !at(&depends, *k)) {
        if let Some(first) = next.get(k).into_iter().flatten().map(|to| at(&layers, *to)).min() {
            change(&mut layers, k, |layer| *layer = first.saturating_sub(1).max(*layer));
        }
    }
    layers
}

fn at<T: Copy + Default>(list: &[T], k: usize) -> T {
    list.get(k).copied().unwrap_or_default()
}

fn change<T>(list: &mut [T], k: usize, change: impl FnOnce(&mut T)) {
    if let Some(of) = list.get_mut(k) {
        change(of);
    }
}

/// Boxes and bends in their layers. The first items are the boxes.
struct Sheet {
    items: Vec<Item>,
    boxes: usize,
    rows: Vec<Vec<usize>>,
    /// The bends of a box, by layer.
    bends: BTreeMap<(usize, usize), usize>,
    links: Vec<Link>,
}

/// A box or a bend.
#[derive(Default)]
struct Item {
    width: f64,
    layer: usize,
    x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Between two items; the source is the box that the edge comes from.
struct Link {
    source: usize,
    from: usize,
    to: usize,
}

impl Sheet {
    fn new(sizes: &[(f64, f64)], layers: &[usize]) -> Sheet {
        let depth = layers.iter().max().map_or(0, |most| most + 1);
        let mut sheet = Sheet {
            items: Vec::new(),
            boxes: sizes.len(),
            rows: vec![Vec::new(); depth],
            bends: BTreeMap::new(),
            links: Vec::new(),
        };
        for (size, layer) in sizes.iter().zip(layers) {
            sheet.item(size.0, *layer);
        }
        sheet
    }

    fn item(&mut self, width: f64, layer: usize) -> usize {
        let k = self.items.len();
        self.items.push(Item { width, layer, ..Item::default() });
        change(&mut self.rows, layer, |row| row.push(k));
        k
    }

    fn connect(&mut self, source: usize, to: usize) {
        let layer = |k: usize| self.items.get(k).map_or(0, |item| item.layer);
        let (first, last) = (layer(source) + 1, layer(to));
        let mut from = source;
        for layer in first..last {
            from = match self.bends.get(&(source, layer)) {
                Some(bend) => *bend,
                None if self.bends.len() >= MAX_BENDS => break,
                None => {
                    let bend = self.item(0.0, layer);
                    self.bends.insert((source, layer), bend);
                    self.link(source, from, bend);
                    bend
                }
            };
        }
        self.link(source, from, to);
    }

    fn link(&mut self, source: usize, from: usize, to: usize) {
        self.links.push(Link { source, from, to });
        change(&mut self.items, from, |item| item.below.push(to));
        change(&mut self.items, to, |item| item.above.push(from));
    }

    /// Sorts the layers so that few edges cross.
    fn sort(&mut self) {
        let mut places = vec![0.0; self.items.len()];
        let mut best = (usize::MAX, self.rows.clone());
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let mut order: Vec<usize> = (0..self.rows.len()).collect();
            if !down {
                order.reverse();
            }
            for row in order {
                let Some(row) = self.rows.get_mut(row) else { continue };
                let mean = |(own, k): (usize, &usize)| {
                    let item = self.items.get(*k);
                    let near = item.map_or(&[][..], |item| if down { &item.above } else { &item.below });
                    (mean(near.iter().map(|k| at(&places, *k))).unwrap_or(own as f64), *k)
                };
                let mut keyed: Vec<(f64, usize)> = row.iter().enumerate().map(mean).collect();
                keyed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
                *row = keyed.into_iter().map(|(_, k)| k).collect();
                row.iter().enumerate().for_each(|(p, k)| change(&mut places, *k, |place| *place = p as f64));
            }
            let crossings = self.crossings(&places);
            if crossings < best.0 {
                best = (crossings, self.rows.clone());
            }
        }
        self.rows = best.1;
    }

    /// The number of crossings between neighbouring layers: inversions, counted in a tree of sums.
    fn crossings(&self, places: &[f64]) -> usize {
        let mut crossings = 0;
        for (upper, lower) in self.rows.iter().zip(self.rows.iter().skip(1)) {
            let mut sums = vec![0usize; lower.len() + 1];
            let mut seen = 0;
            for item in upper.iter().filter_map(|k| self.items.get(*k)) {
                let mut ends: Vec<usize> = item.below.iter().map(|k| at(places, *k) as usize + 1).collect();
                ends.sort_unstable_by(|a, b| b.cmp(a));
                let before = seen;
                for end in &ends {
                    let (mut k, mut not_right) = (*end, 0);
                    while k > 0 {
                        not_right += at(&sums, k);
                        k &= k - 1;
                    }
                    crossings += before.max(not_right) - not_right;
                }
                for end in ends {
                    let mut k = end;
                    while k < sums.len() {
                        change(&mut sums, k, |sum| *sum += 1);
                        k += k & k.wrapping_neg();
                    }
                    seen += 1;
                }
            }
        }
        crossings
    }

    /// Moves items as near to their neighbours as the order and the widths allow.
    fn place(&mut self) {
        for row in &self.rows {
            spread(row, &vec![(0.0, 1.0); row.len()], &mut self.items, self.boxes);
        }
        let straightening = if self.items.len() <= SMALL { STRAIGHTENING } else { 4 };
        for sweep in 0..MOVES + straightening {
            // At last by neighbours of both sides.
            let (above, below) = if sweep >= MOVES { (true, true) } else { (sweep % 2 == 0, sweep % 2 == 1) };
            let upward = sweep % 2 == 1;
            let count = self.rows.len();
            for k in 0..count {
                let Some(row) = self.rows.get(if upward { count - 1 - k } else { k }) else { continue };
                let both = above && below;
                let wish = |k: &usize| {
                    let Some(item) = self.items.get(*k) else { return (0.0, 1.0) };
                    let near = item.above.iter().filter(|_| above).chain(item.below.iter().filter(|_| below));
                    let (sum, weight) = near.fold((0.0, 0.0), |(sum, weight), other| {
                        let pull = if both { self.pull(*k, *other) } else { 1.0 };
                        (sum + pull * self.items.get(*other).map_or(0.0, |other| other.x), weight + pull)
                    });
                    // Right below a box, bends and boxes count the same: what is pushed apart then meets again.
                    match weight > 0.0 {
                        true => (sum / weight, if both { weight } else { 1.0 }),
                        false => (item.x, 0.1),
                    }
                };
                let wishes: Vec<(f64, f64)> = row.iter().map(wish).collect();
                spread(row, &wishes, &mut self.items, self.boxes);
            }
        }
        let left = self.items.iter().map(|item| item.x - item.width / 2.0).fold(f64::INFINITY, f64::min);
        self.items.iter_mut().for_each(|item| item.x -= left);
    }

    /// How much an edge wants to be straight: long ones more than those between boxes.
    fn pull(&self, one: usize, other: usize) -> f64 {
        match (one < self.boxes, other < self.boxes) {
            (true, true) => 4.0,
            (false, false) => 12.0,
            _ => 1.0,
        }
    }

    fn draw(&self, sizes: &[(f64, f64)]) -> Layout {
        // The top and the bottom of each layer.
        let (mut bounds, mut top, mut height) = (Vec::new(), 0.0, 0.0f64);
        for row in &self.rows {
            let tallest = row.iter().map(|k| sizes.get(*k).map_or(0.0, |size| size.1)).fold(0.0, f64::max);
            bounds.push((top, top + tallest));
            height = top + tallest;
            let reach = |k: &usize| {
                let item = self.items.get(*k)?;
                let far = item.below.iter().filter_map(|k| Some((self.items.get(*k)?.x - item.x).abs()));
                Some(far.fold(0.0, f64::max))
            };
            let reach = row.iter().filter_map(reach).fold(0.0, f64::max);
            top = height + LAYER_GAP + (reach / 12.0).min(60.0);
        }
        let bounds = |k: usize| self.items.get(k).map_or((0.0, 0.0), |item| at(&bounds, item.layer));
        let x = |k: usize| self.items.get(k).map_or(0.0, |item| item.x);
        let mut pieces = Vec::new();
        let mut vertical = |source, k: usize, from: f64, to: f64| {
            if to > from {
                pieces.push(Piece { source, from: (x(k), from), to: (x(k), to), arrow: false });
            }
        };
        for ((source, _), bend) in &self.bends {
            vertical(*source, *bend, bounds(*bend).0, bounds(*bend).1);
        }
        for (k, size) in
            sizes.iter().enumerate().filter(|(k, _)| self.items.get(*k).is_some_and(|i| !i.below.is_empty()))
        {
            vertical(k, k, bounds(k).0 + size.1, bounds(k).1);
        }
        let ports = self.ports();
        for (link, port) in self.links.iter().zip(ports) {
            let (from, to) = ((x(link.from), bounds(link.from).1), (x(link.to) + port, bounds(link.to).0));
            pieces.push(Piece { source: link.source, from, to, arrow: link.to < self.boxes });
        }
        let width = self.items.iter().map(|item| item.x + item.width / 2.0).fold(0.0, f64::max);
        let places = (0..self.boxes).map(|k| (x(k), bounds(k).0)).collect();
        Layout { places, pieces, width, height }
    }

    /// How far from the middle of its end each link ends, so that arrows stand side by side.
    fn ports(&self) -> Vec<f64> {
        let mut ports = vec![0.0; self.links.len()];
        let mut ends: BTreeMap<usize, Vec<(f64, usize)>> = BTreeMap::new();
        for (k, link) in self.links.iter().enumerate().filter(|(_, link)| link.to < self.boxes) {
            ends.entry(link.to).or_default().push((self.items.get(link.from).map_or(0.0, |item| item.x), k));
        }
        for (to, mut ending) in ends {
            ending.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            let width = self.items.get(to).map_or(0.0, |item| item.width);
            let step = PORT.min(width / (ending.len() + 1) as f64);
            let middle = (ending.len() - 1) as f64 / 2.0;
            for (p, (_, k)) in ending.iter().enumerate() {
                change(&mut ports, *k, |port| *port = (p as f64 - middle) * step);
            }
        }
        ports
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0usize, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

/// Places the items of a row in their order, without overlaps, so that the weighted squares of the distances to their
/// wishes are least: neighbours that would overlap form blocks, which move as one. A wish is a place and its weight.
fn spread(row: &[usize], wishes: &[(f64, f64)], items: &mut [Item], boxes: usize) {
    let (mut offsets, mut offset, mut before) = (Vec::new(), 0.0, None);
    // Blocks: weighted sum of what their items wish for the left end, weight, number of items.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (k, (wish, weight)) in row.iter().zip(wishes) {
        let Some(item) = items.get(*k) else { continue };
        let is_bend = *k >= boxes;
        if let Some((width, bend)) = before {
            let gap = if is_bend || bend { GAP / 2.0 } else { GAP };
            offset += (width + item.width) / 2.0 + gap;
        }
        before = Some((item.width, is_bend));
        offsets.push(offset);
        let mut block = (weight * (wish - offset), *weight, 1);
        while let Some(left) = blocks.pop_if(|left| left.0 * block.1 >= block.0 * left.1) {
            block = (left.0 + block.0, left.1 + block.1, left.2 + block.2);
        }
        blocks.push(block);
    }
    let places = blocks.iter().flat_map(|(sum, weight, count)| std::iter::repeat_n(sum / weight, *count));
    for ((k, offset), left) in row.iter().zip(offsets).zip(places) {
        change(items, *k, |item| item.x = left + offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_come_right_above_their_readers() {
        // 0 is an input, 1 to 4 a chain; 5 and 6 are constants that lead to the last of it.
        let edges = [(0, 1), (1, 2), (2, 3), (3, 4), (5, 6), (6, 4)];
        let inputs = [true, false, false, false, false, false, false];
        assert_eq!(layers(7, &edges, &inputs), [0, 1, 2, 3, 4, 2, 3]);
        // What depends on an input stays as high as it can.
        assert_eq!(layers(3, &[(0, 1)], &[true, false, false]), [0, 1, 0]);
        let branch = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 3)];
        assert_eq!(layers(5, &branch, &[true, false, false, false, false]), [0, 1, 2, 3, 1]);
    }
}
