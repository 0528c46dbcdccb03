//! Functions in eight pieces, narrow near 0 and wide far off. Their coefficients stand in tables where [`Wide::lookup`] finds
//! them. Each centre is a number whose function is nearly a float.

use super::wide::Wide;

/// y = value + d * (slopes in d), d the distance from the centre. The entry of a is found by the last bits of the exponent of
/// a * `scale` + 1, and the first ones of its fraction.
pub(super) struct Pieces {
    /// The function is constant from here on.
    pub(super) end: f32,
    pub(super) scale: f32,
    /// What the fraction has beyond its first bits.
    pub(super) bits: u32,
    pub(super) centres: [f32; 8],
    pub(super) values: [f32; 8],
    pub(super) slopes: [[f32; 8]; 7],
}

impl Pieces {
    /// (value, d, slope): the function of a, from 0 to the end, is value + d * slope.
    #[inline(always)]
    pub(super) fn at<V: Wide>(&self, a: V) -> (V, V, V) {
        let place = a.mul_add(V::all(self.scale), V::all(1.0)).without_last(self.bits);
        let d = a.minus(place.lookup(&self.centres));
        let [first, others @ .., low, high] = &self.slopes;
        let (pairs, square) = (others.as_chunks::<2>().0, d.times(d));
        let mut rest = place.lookup(high).mul_add(d, place.lookup(low));
        // Pairs don't wait for each other. The first slope, the largest one, is added by itself: the rest rounds less.
        for [low, high] in pairs.iter().rev() {
            rest = rest.mul_add(square, place.lookup(high).mul_add(d, place.lookup(low)));
        }
        let slope = rest.mul_add(d, place.lookup(first));
        (place.lookup(&self.values), d, slope)
    }

    /// The function of x, odd and 0 at 0. The piece whose value is 0 is x + x * (slopes in x).
    #[inline(always)]
    pub(super) fn odd<V: Wide>(&self, x: V) -> V {
        let a = x.abs().least(V::all(self.end));
        let (value, d, slope) = self.at(a);
        d.mul_add(slope, value.below(V::all(f32::MIN_POSITIVE), a, value)).copysign(x)
    }
}

/// tanh, which is 1 at the end: errors of at most 2^-26.1.
#[rustfmt::skip]
pub(super) const TANH: Pieces = Pieces {
    end: 9.02,
    scale: 1.6628048,
    bits: 22,
    centres: [0.9022619, 1.5035464, 2.4045322, 3.6273713, 5.613054, 7.9711924, 0.0, 0.4510118],
    values: [0.71739745, 0.90578705, 0.983821, 0.99858737, 0.99997336, 0.99999976, 0.0, 0.42273036],
    slopes: [
        [0.48534086, 0.17954981, 0.03209633, 0.002823261, 0.000053217598, 4.7636064e-07, 6.1561056e-10, 0.821299],
        [
            -0.34818354, -0.1626338, -0.03157627, -0.0028193397, -0.00005328541, -4.7727724e-07, -1.9416211e-07,
            -0.3471881,
        ],
        [0.088008165, 0.08746204, 0.020365909, 0.0018743266, 0.000036022095, 3.2156112e-07, -0.33332336, -0.12699045],
        [
            0.05300969, -0.02501809, -0.009524271, -0.00093073526, -0.000017684368, -1.5679932e-07, -0.00019055033,
            0.16942267,
        ],
        [
            -0.056608558, -0.0025157547, 0.0032954258, 0.0003675501, 6.158021e-06, 5.6697854e-08, 0.13503335,
            -0.011725765,
        ],
        [
            0.013554149, 0.007158157, -0.0007046351, -0.00012511962, -2.6073171e-06, -2.4464654e-08, -0.0074186814,
            -0.05947174,
        ],
        [
            0.009736665, -0.003882064, -4.550724e-06, 0.000034980338, 1.2257873e-06, 1.0021296e-08, -0.04032494,
            0.039479338,
        ],
    ],
};

/// erf, which is 1 at the end: errors of at most 2^-29.4.
#[rustfmt::skip]
pub(super) const ERF: Pieces = Pieces {
    end: 3.95,
    scale: 0.7594177,
    bits: 21,
    centres: [1.6452107, 2.3046844, 3.0015554, 3.6911774, 0.0, 0.4937274, 0.8228657, 1.152249],
    values: [0.98001766, 0.9988832, 0.9999781, 0.9999998, 0.0, 0.51497036, 0.7554576, 0.8967983],
    slopes: [
        [0.07532552, 0.0055676205, 0.00013795683, 1.3649864e-06, 0.12837917, 0.8842774, 0.5733117, 0.29912448],
        [-0.12392644, -0.01283141, -0.00041411148, -5.038748e-06, 1.4760147e-07, -0.43659192, -0.47175854, -0.34466588],
        [0.11081592, 0.017859034, 0.0007828805, 0.000012001189, -0.37612975, -0.1510625, 0.06769058, 0.16505258],
        [-0.04984363, -0.016313601, -0.0010353249, -0.000020411677, 0.000017311278, 0.18281108, 0.12940362, 0.01980131],
        [-0.00047170432, 0.00968009, 0.0010034196, 0.000025012674, 0.112936735, 0.009800374, -0.06278828, -0.05864818],
        [
            0.013459662, -0.0029114992, -0.00075623934, -0.000027836217, -0.0011055168, -0.049675614, -0.017301625,
            0.016966201,
        ],
        [
            -0.0059074103, -0.00036989647, 0.0004326243, 0.000034802513, -0.024101019, -0.0071055847, 0.016557224,
            0.008418458,
        ],
    ],
};

/// The share of the standard normal distribution above a, times e^(a^2 / 2): errors of at most 2^-24.8.
#[rustfmt::skip]
pub(super) const SHARE: Pieces = Pieces {
    end: 14.5,
    scale: 1.0343794,
    bits: 22,
    centres: [1.4499844, 2.4165342, 3.8672638, 5.799787, 8.700421, 12.56814, 0.24176922, 0.72495496],
    values: [0.21038525, 0.1452359, 0.09732134, 0.06690053, 0.045270022, 0.031545095, 0.41647533, 0.30463836],
    slopes: [
        [-0.09388695, -0.047974773, -0.022574991, -0.010933459, -0.0050740154, -0.0024791074, -0.29825136, -0.1780932],
        [0.037125383, 0.014651618, 0.005008994, 0.0017443991, 0.0005619845, 0.0001936638, 0.17218366, 0.08776441],
        [
            -0.01335188, -0.004189547, -0.0010680205, -0.00027211162, -0.000061529565, -0.00001503954, -0.08554117,
            -0.038155634,
        ],
        [
            0.0044395295, 0.0011316193, 0.00021936322, 0.000041538475, 6.648184e-06, 1.1605408e-06, 0.03787439,
            0.015025128,
        ],
        [
            -0.0013825115, -0.00029088787, -0.000043674725, -6.215185e-06, -7.1230664e-07, -8.909549e-08, -0.015269368,
            -0.005464372,
        ],
        [
            0.00041965774, 0.0000732257, 8.975789e-06, 9.461683e-07, 8.18657e-08, 7.0938717e-09, 0.005755629,
            0.0018647221,
        ],
        [
            -0.000115591734, -0.000017111035, -1.6685219e-06, -1.3732902e-07, -8.549221e-09, -5.381224e-10,
            -0.002056903, -0.00047744688,
        ],
    ],
};
