//! Draws shapes of inputs that fit together.

use super::goals::Feature;
use super::maker::Maker;

/// Maximum number of elements of an input.
const MOST: usize = 60;

/// Shapes of operators that need more than luck: sizes, letters for sizes, and letters times a number. The attribute
/// `hidden_size` is `h`.
const SHAPES: &[(&str, &[&str])] = &[
    ("Adagrad", &["", "", "a b", "a b", "a b"]),
    ("Adam", &["", "", "a b", "a b", "a b", "a b"]),
    ("AffineGrid", &["a 2 3", "4"]),
    ("Attention", &["a h b 2", "a h c 2", "a h c 2"]),
    ("BatchNormalization", &["a b 2", "b", "b", "b", "b"]),
    ("CausalConvWithState", &["a b 4", "b 1 2", "b", "a b 1"]),
    ("Col2Im", &["a 4 b", "2", "2"]),
    ("Conv", &["a h 4 3", "b h 2 2", "b"]),
    ("ConvInteger", &["a h 4 3", "b h 2 2", "", ""]),
    ("ConvTranspose", &["a h 2 3", "h b 2 2", "b"]),
    ("DeformConv", &["a h 3 4", "b h 1 1", "a 2 3 4", "b", "a 1 3 4"]),
    ("Dropout", &["a b", "", ""]),
    ("GRU", &["a b c", "1 3h c", "1 3h h", "1 6h", "b", "1 b h"]),
    ("Gemm", &["a b", "b c", "a c"]),
    ("GridSample", &["a b 3 3", "a 2 2 2"]),
    ("GroupNormalization", &["a 2 3", "2", "2"]),
    ("InstanceNormalization", &["a b 3", "b", "b"]),
    ("LSTM", &["a b c", "1 4h c", "1 4h h", "1 8h", "b", "1 b h", "1 b h", "1 3h"]),
    ("LayerNormalization", &["a b c", "c", "c"]),
    ("LinearAttention", &["a b 2h", "a b 2h", "a b 3h", "a h 2 3", "a b h", "a b h"]),
    ("MatMul", &["a b", "b c"]),
    ("MatMulInteger", &["a b", "b c", "", ""]),
    ("MaxRoiPool", &["a b 3 4", "c 5"]),
    ("MelWeightMatrix", &["", "", "", "", ""]),
    ("Momentum", &["", "", "a b", "a b", "a b"]),
    ("NegativeLogLikelihoodLoss", &["a b", "a", "b"]),
    ("NonMaxSuppression", &["a b 4", "a c b", "1", "1", "1"]),
    ("QLinearConv", &["a h 3 4", "", "", "b h 2 1", "", "", "", "", "b"]),
    ("QLinearMatMul", &["a b", "", "", "b c", "", "", "", ""]),
    ("RMSNormalization", &["a b c", "c"]),
    ("RNN", &["a b c", "1 h c", "1 h h", "1 2h", "b", "1 b h"]),
    ("RoiAlign", &["a b 3 4", "c 4", "c"]),
    ("RotaryEmbedding", &["a h b 4", "5 2", "5 2", "a b"]),
    ("SoftmaxCrossEntropyLoss", &["a b", "a", "b"]),
    ("STFT", &["a 8 1", "", "4", ""]),
];

impl Maker<'_> {
    /// The shape of an input, which may go with that of the first one.
    pub(super) fn shape(&mut self, place: usize) -> Vec<usize> {
        if place == 0 {
            self.first = self.first_shape();
            return self.first.clone();
        }
        if let Some(shape) = self.of_table(place) {
            return shape;
        }
        let rank = self.first.len();
        let mut dims = match self.source.below(8) {
            0..=2 => self.first.clone(),
            3 => {
                let at = self.source.below(rank);
                vec![self.first.get(at).copied().unwrap_or(1)]
            }
            4 => vec![],
            5 => vec![self.source.pick(&[1, rank, 2 * rank])],
            6 => self.first.iter().skip(1).copied().collect(),
            _ => (0..1 + self.source.below(3)).map(|_| self.size()).collect(),
        };
        fit(&mut dims);
        dims
    }

    fn first_shape(&mut self) -> Vec<usize> {
        let known = self.of_table(0);
        let mut dims = match known {
            _ if self.is(Feature::Scalar) => vec![],
            Some(dims) => dims,
            None => {
                let rank = self.source.pick(&[2, 3, 4, 1, 4, 3, 2, 5, 0]);
                (0..rank).map(|_| self.size()).collect()
            }
        };
        if self.is(Feature::Empty) {
            let at = self.source.below(dims.len());
            dims.get_mut(at).into_iter().for_each(|size| *size = 0);
        }
        fit(&mut dims);
        dims
    }

    /// The shape of the table.
    fn of_table(&self, place: usize) -> Option<Vec<usize>> {
        let (_, shapes) = SHAPES.iter().find(|(name, _)| *name == self.schema.name).filter(|_| self.fitting)?;
        Some(shapes.get(place)?.split(' ').filter(|dim| !dim.is_empty()).map(|dim| self.named(dim)).collect())
    }

    /// A size of the table.
    fn named(&self, dim: &str) -> usize {
        let [a, b, c] = self.sizes;
        let (times, letter) = dim.split_at(dim.find(char::is_alphabetic).unwrap_or(dim.len()));
        let size = match letter {
            "" => 1,
            "h" | "a" => a,
            "b" => b,
            _ => c,
        };
        times.parse().unwrap_or(1) * size
    }

    pub(super) fn size(&mut self) -> usize {
        let sizes = self.sizes;
        self.source.pick(&sizes)
    }
}

/// Halves the largest dimension until there are few enough elements.
fn fit(dims: &mut [usize]) {
    while dims.iter().product::<usize>() > MOST {
        dims.iter_mut().max().into_iter().for_each(|largest| *largest /= 2);
    }
}
