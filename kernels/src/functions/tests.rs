use super::Real;
use crate::exact::{Exact, ulps};
use crate::testing::at_each_level;
use crate::testing::sized;
use std::hint::black_box;
use std::time::Instant;

#[derive(Clone, Copy)]
struct Function {
    name: &'static str,
    single: fn(&[f32], &mut [f32]),
    double: fn(&[f64], &mut [f64]),
    reference: fn(f64) -> f64,
    /// Maximum error in `f32` and `f64`, in units of the last place.
    errors: (f64, f64),
}

/// A loop for each function, as kernels have them. Arguments follow the number.
macro_rules! functions {
    ($($name:ident: $function:ident($($argument:expr),*), $errors:expr, $reference:expr;)*) => {
        $(mod $name {
            use super::Real;

            #[inline(always)]
            fn body<T: Real>(input: &[T], output: &mut [T]) {
                for (output, &x) in output.iter_mut().zip(input) {
                    *output = crate::functions::$function(x $(, $argument)*);
                }
            }
            crate::cpu::for_each_level! {
                pub(super) fn all<T: Real>(input: &[T], output: &mut [T]) -> () = body;
            }
        })*
        const FUNCTIONS: &[Function] = &[$(Function {
            name: stringify!($name),
            single: $name::all::<f32>,
            double: $name::all::<f64>,
            reference: $reference,
            errors: $errors,
        }),*];
    };
}

functions! {
    exp: exp(), (0.8, 1.0), f64::exp;
    expm1: expm1(), (1.0, 1.0), f64::exp_m1;
    sigmoid: sigmoid(), (0.8, 1.0), |x| if x > 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) };
    tanh: tanh(), (0.8, 1.0), f64::tanh;
    sinh: sinh(), (0.51, 1.0), f64::sinh;
    cosh: cosh(), (0.51, 1.0), f64::cosh;
    softplus: softplus(), (0.51, 2.0), |x| if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() };
    log: log(), (0.9, 0.7), f64::ln;
    log1p: log1p(), (0.95, 1.0), f64::ln_1p;
    asinh: asinh(), (0.51, 1.0), |x| super::asinh(x);
    acosh: acosh(), (0.51, 1.0), |x| super::acosh(x);
    atanh: atanh(), (0.51, 1.0), |x| super::atanh(x);
    erf: erf(), (0.8, 1.0), |x| super::erf(x);
    asin: asin(), (0.51, 1.0), f64::asin;
    acos: acos(), (0.51, 1.0), f64::acos;
    atan: atan(), (0.51, 1.0), f64::atan;
    sin: sin(), (0.6, 1.0), f64::sin;
    cos: cos(), (0.6, 1.0), f64::cos;
    tan: tan(), (0.6, 1.0), f64::tan;
    swish: swish(1.0), (0.51, 2.0), |x| gated(x, (x, 0.0));
    swish_steep: swish(30.3), (0.51, 2.0), |x| gated(x, product(x, 30.3f32.into()));
    swish_flat: swish(-0.011), (0.51, 2.0), |x| gated(x, product(x, (-0.011f32).into()));
    swiglu: swiglu(T::of(2.5), 1.0), (0.51, 3.0), |x| 2.5 * gated(x, (x, 0.0));
    gelu: gelu(), (2.0, 3.0), |x| super::gelu(x);
    gelu_tanh: gelu_tanh(), (0.51, 2.0), |x| super::gelu_tanh(x);
    mish: mish(), (0.51, 4.0), mish_of_std;
    elu: elu(0.7), (2.0, 2.0), |x| if x < 0.0 { 0.7 * x.exp_m1() } else { x };
    selu: elu(1.758_099_340_847_376_8), (2.0, 2.0), |x| if x < 0.0 { 1.758_099_340_847_376_8 * x.exp_m1() } else { x };
    elu_small: elu(1e-30), (2.0, 2.0), |x| if x < 0.0 { 1e-30 * x.exp_m1() } else { x };
    celu: scaled_celu(0.7), (0.51, 3.0), |x| f64::from(0.7f32) * (x / f64::from(0.7f32)).exp_m1();
    celu_flat: scaled_celu(1e10), (0.51, 3.0), |x| if x.abs() < 1e-200 { x } else { 1e10 * (x / 1e10).exp_m1() };
}

/// Functions that replace slices, and of each.
macro_rules! slices {
    ($($name:ident: $each:expr;)*) => {$(
        mod $name {
            use super::super::*;

            pub(super) fn check<T: Real>(numbers: &[T]) {
                let mut some = numbers.to_vec();
                // Ordinary numbers have others beside them, or none.
                let cuts = (0..3).flat_map(|len| [64, 16, 1, 37, 7 + len]).cycle();
                let mut rest = &mut some[..];
                for len in cuts {
                    let (now, after) = rest.split_at_mut(len.min(rest.len()));
                    crate::functions::$name(now);
                    rest = after;
                    if rest.is_empty() {
                        break;
                    }
                }
                for (x, got) in numbers.iter().zip(&some) {
                    let want = $each(*x);
                    let same = bytemuck::bytes_of(got) == bytemuck::bytes_of(&want);
                    assert!(same || got.is_nan() && want.is_nan(), "{x:?}: {got:?} {want:?}");
                }
            }
        }
    )*};
}

slices! {
    exp_in_place: exp;
    sigmoid_in_place: sigmoid;
    tanh_in_place: tanh;
    erf_in_place: erf;
    gelu_in_place: gelu;
    gated_in_place: |x| x * sigmoid(x);
}

/// The numbers of a vector decide together how they are computed, and it makes no difference.
#[test]
fn functions_of_slices_are_those_of_each() {
    let ends = [
        -87.4f32,
        -86.0,
        -18.5,
        18.5,
        86.0,
        88.8,
        89.5,
        -103.9,
        f32::NAN,
        f32::INFINITY,
        -f32::INFINITY,
        0.0,
        -0.0,
        1e-40,
        0.300_696_73,
        9.02,
        0.329_199_52,
        3.95,
        0.483_381_6,
        14.5,
    ];
    let near = ends.iter().flat_map(|x| [x.next_down(), *x, x.next_up(), 1.0]);
    let singles = (0..sized(1 << 17, 1 << 8)).map(|i: u32| f32::from_bits(i.wrapping_mul(32_771)));
    let small = (0..sized(1 << 17, 1 << 8)).map(|i: u32| (i.wrapping_mul(40_503) % 200_001) as f32 * 1e-3 - 100.0);
    let singles: Vec<f32> = near.chain(singles).chain(small).collect();
    let doubles: Vec<f64> = singles.iter().map(|x| f64::from(*x) * 8.1).collect();
    at_each_level(|| {
        for (check, wide) in [
            (exp_in_place::check as fn(&[f32]), exp_in_place::check as fn(&[f64])),
            (sigmoid_in_place::check, sigmoid_in_place::check),
            (tanh_in_place::check, tanh_in_place::check),
            (erf_in_place::check, erf_in_place::check),
            (gelu_in_place::check, gelu_in_place::check),
            (gated_in_place::check, gated_in_place::check),
        ] {
            check(&singles);
            wide(&doubles);
        }
    });
}

/// Gelu by Erf is what its steps are one by one, also where half of a product isn't a product with half.
#[test]
fn gelu_of_erf_rounds_each_step() {
    use crate::functions::{GeluOfErf, Halved, Scaled, erf, gelu_of_erf_all};
    let ends = [f32::MAX, -f32::MAX, 2e-38, 3e-45, -3e-45, -0.0, f32::INFINITY, -f32::INFINITY, f32::NAN];
    let singles: Vec<f32> =
        ends.into_iter().chain((0..sized(4001, 40)).map(|at: u16| f32::from(at) * 3e-3 - 6.0)).collect();
    let doubles: Vec<f64> = singles.iter().map(|x| f64::from(*x) * 1.000_000_1).collect();
    fn check<T: Real>(numbers: &[T], of: fn(f64) -> T) {
        for (c, scaled) in [(1.41, Scaled::By as fn(f64) -> Scaled), (0.71, Scaled::Times)] {
            let (c, scaled) = (of(c), scaled(of(c).to_f64()));
            for halved in [Halved::X, Halved::Sum, Halved::Product] {
                let mut got = numbers.to_vec();
                gelu_of_erf_all(numbers, GeluOfErf { scaled, halved }, &mut got);
                for (&x, got) in numbers.iter().zip(got) {
                    let sum = erf(if matches!(scaled, Scaled::By(_)) { x / c } else { x * c }) + of(1.0);
                    let want = match halved {
                        Halved::X => (x * of(0.5)) * sum,
                        Halved::Sum => x * (sum * of(0.5)),
                        Halved::Product => (x * sum) * of(0.5),
                    };
                    let (got, want) = (got.to_f64(), want.to_f64());
                    let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                    assert!(same, "{x:?}, {scaled:?}, {halved:?}: {got:?} {want:?}");
                }
            }
        }
    }
    at_each_level(|| {
        check::<f32>(&singles, |x| x as f32);
        check::<f64>(&doubles, |x| x);
    });
}

/// x * a in two parts.
fn product(x: f64, a: f64) -> (f64, f64) {
    (x * a, x.mul_add(a, -(x * a)))
}

/// x / (1 + e^-(gate + low)), of std's functions.
fn gated(x: f64, (gate, low): (f64, f64)) -> f64 {
    let low = if gate.abs() < 1000.0 { low } else { 0.0 };
    // The root of a small factor isn't subnormal.
    let root = (0.5 * gate).exp();
    if gate < -40.0 { x * root * (1.0 + low) * root } else { x / (1.0 + (-gate).exp() * (1.0 - low)) }
}

fn mish_of_std(x: f64) -> f64 {
    let e = x.min(40.0).exp();
    let n = e * (e + 2.0);
    if x < -40.0 { gated(x, (x, 0.0)) } else { x * (n / (n + 2.0)) }
}

/// The share of the normal distribution below x to some 14 digits: a series, and a continued fraction where that cancels.
fn gelu_of_a_series(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x < -2.0 {
        let fraction = (1..200).rev().fold(-x, |fraction, k| -x + f64::from(k) / fraction);
        return x * density / fraction;
    }
    let (mut sum, mut term) = (0.0, x);
    for k in 1..200 {
        sum += term;
        term *= x * x / f64::from(2 * k + 1);
    }
    x * if x > 8.0 { 1.0 } else { 0.5 + density * sum }
}

fn gelu_tanh_of_std(x: f64) -> f64 {
    gated(x, ((8.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x), 0.0))
}

/// Formulas that are too inexact for `f64`.
#[test]
fn gelu_is_that_of_other_formulas() {
    let formulas: [fn(f64) -> f64; 2] = [gelu_of_a_series, gelu_tanh_of_std];
    for (name, formula) in ["gelu", "gelu_tanh"].into_iter().zip(formulas) {
        let function = FUNCTIONS.iter().find(|function| function.name == name).unwrap();
        let numbers = samples(sized(60_000, 300), |bits| f32::from_bits(bits as u32)).into_iter();
        // Random bits are seldom numbers of such size.
        let numbers = numbers.chain((0..sized(14_000, 140)).map(|at: u16| f32::from(at) * -1.001e-3));
        // The series is NaN at infinity, and far below 0 its density is subnormal.
        let numbers: Vec<f32> = numbers.filter(|x| x.is_finite() && *x > -30.0).collect();
        let mut output = vec![0.0; numbers.len()];
        (function.single)(&numbers, &mut output);
        for (x, y) in numbers.iter().zip(output) {
            let error = error_f32(y, formula((*x).into()));
            assert!(error <= function.errors.0, "{name}({x:e}) = {y:e}: {error}");
        }
    }
}

/// Against sums of two doubles, rounded from 400 bits.
#[test]
fn activations_of_doubles() {
    for (name, values) in DOUBLES {
        let function = FUNCTIONS.iter().find(|function| function.name == *name).unwrap();
        for &(x, high, low) in *values {
            let mut output = [0.0];
            (function.double)(&[x], &mut output);
            let error = ulps(output[0], &Exact::of(high).plus(&Exact::of(low)));
            assert!(error <= function.errors.1, "{name}({x:e}) = {:e}, not {high:e}: {error}", output[0]);
        }
    }
}

/// (x, high, low): a function of x is high + low.
type Values = &'static [(f64, f64, f64)];

const DOUBLES: &[(&str, Values)] = &[
    (
        "gelu",
        &[
            (-38.4, -2.535e-321, -0.0),
            (-36.6469841082624, -9.365459296243128e-293, 2.581809890031024e-309),
            (-21.7, -2.2260162773522156e-103, -4.351092701259188e-120),
            (-12.9, -2.9031268025054318e-37, -6.341648624712043e-54),
            (-5.03, -1.2335567878688118e-06, 6.26628579310708e-23),
            (-2.81, -0.00696058074658827, -2.754926302479759e-19),
            (-1.17, -0.1415705667725913, 2.740178546817938e-18),
            (-0.43, -0.1434470628560468, 5.8686232868798786e-18),
            (-1e-05, -4.999960105771961e-06, 3.3691882731332855e-22),
            (0.61, 0.4447321486923665, 2.0311996829740444e-17),
            (1.9, 1.8454385363495964, 5.817415968497775e-17),
            (7.3, 7.299999999998949, 3.6286465020919215e-16),
        ],
    ),
    (
        "gelu_tanh",
        &[
            (-21.3, -1.26335442077e-313, -0.0),
            (-20.9, -8.451582056968937e-297, -3.00790350494e-313),
            (-12.7, -6.682339987411298e-72, -2.624002662388869e-88),
            (-6.1, -3.341252043078998e-11, -2.6131780731417843e-27),
            (-2.2, -0.03032147296198861, -1.4146509070588318e-18),
            (-0.7, -0.16942986529488324, -5.982343408850595e-18),
            (-1e-05, -4.999960105771961e-06, 3.3362785620756535e-22),
            (0.4, 0.2621611694273562, 2.311801073551319e-17),
            (1.3, 1.1739290123173094, 5.365850845193545e-17),
            (4.4, 4.39999099805875, -1.473958742252168e-16),
        ],
    ),
    (
        "swish_steep",
        &[
            (-24.5, -9.8e-322, -0.0),
            (-23.3, -5.751781271820193e-306, -7.4e-323),
            (-9.1, -1.6256494907818756e-119, 5.8387341012940295e-137),
            (-1.2, -1.9419331776227683e-16, 3.26740291608388e-33),
            (-0.05, -0.009009949041670037, -3.341219198275832e-19),
            (0.3, 0.2999661673876144, 2.385882933316472e-17),
            (2.0, 2.0, -9.611364662068266e-27),
        ],
    ),
    (
        "swish_flat",
        &[
            (67900.0, 2.866e-320, 0.0),
            (64321.7, 3.374473610563134e-303, -2.4149e-319),
            (3333.3, 3.9710259653091e-13, 2.0758574493980222e-29),
            (100.1, 24.978337924360616, -7.952997605332229e-16),
            (-0.1, -0.050027499997078076, 1.0522503916408108e-18),
            (-500.0, -497.964931081649, 2.6586758318628627e-15),
        ],
    ),
    (
        "mish",
        &[
            (-744.3, -4.23e-321, -0.0),
            (-709.7, -4.288258908424408e-306, 7e-323),
            (-55.5, -4.3747096837834723e-23, 1.0906483840244176e-39),
            (-39.9, -1.8733678714798474e-16, 1.2003840188584158e-32),
            (-26.3, -9.954303419266721e-11, 4.4460859377551276e-27),
            (-3.3, -0.1194713166346856, 6.069381958060472e-19),
            (-0.7, -0.267870234795501, 1.7863030126439672e-17),
            (0.2, 0.13259900186215925, -9.131286138542363e-18),
            (2.9, 2.8842668281130717, 1.310463121376435e-16),
            (17.0, 16.999999999999943, -1.4294629866981953e-15),
        ],
    ),
    (
        "elu",
        &[
            (-38.0, -0.7, 2.1973929544336205e-17),
            (-3.0, -0.6651490521424952, 2.9958172498953253e-18),
            (-0.7, -0.3523902873460133, -4.071302114278697e-18),
            (-0.3935, -0.22771607769618943, 9.625513186726194e-18),
            (-0.001, -0.0006996501166375058, -3.9207371524631056e-20),
            (-1e-310, -7e-311, 0.0),
        ],
    ),
    (
        "celu",
        &[
            (-28.0, -0.699999988079071, 2.9738459022873027e-18),
            (-3.0, -0.6903653382332006, 2.871087727978638e-17),
            (-0.856, -0.49392849665496347, 2.6146921425409394e-17),
            (-0.2, -0.17396589444419472, 6.593964649342762e-18),
            (-0.001, -0.0009992860542881736, -1.0451851986338345e-20),
            (-1e-310, -1e-310, 0.0),
        ],
    ),
    (
        "celu_flat",
        &[
            (-100000000000.0, -9999546000.702375, 2.6050266060265563e-07),
            (-1000000000.0, -951625819.6404042, -4.396175745241063e-08),
            (-0.2, -0.199999999998, -1.1267724321361035e-17),
            (-1e-301, -1e-301, 0.0),
            (-1e-310, -1e-310, 0.0),
        ],
    ),
];

/// The functions of slices, each beside the one of numbers.
macro_rules! of_slices {
    ($($name:ident: $all:ident;)*) => {
        [$((stringify!($name), super::$all as fn(&[f32], &mut [f32]), super::$all as fn(&[f64], &mut [f64]))),*]
    };
}

/// The functions that have slices of their own, with the references and bounds of those in [`FUNCTIONS`].
fn slices() -> impl Iterator<Item = Function> {
    let all = of_slices! {
        exp: exp_all;
        sigmoid: sigmoid_all;
        tanh: tanh_all;
        erf: erf_all;
        gelu: gelu_all;
        sin: sin_all;
        cos: cos_all;
        tan: tan_all;
    };
    all.into_iter().map(|(name, single, double)| {
        let &Function { reference, errors, .. } = FUNCTIONS.iter().find(|function| function.name == name).unwrap();
        Function { name, single, double, reference, errors }
    })
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// The distance in units of the last place of the exact result, for a type with `digits` bits, the last of at least
/// 2^`least`.
fn error(got: f64, exact: f64, digits: i32, least: i32, max: f64) -> f64 {
    if same(got, exact) {
        return 0.0;
    }
    // The greatest numbers' neighbour would be 2^MAX_EXP.
    let exact = if exact.is_infinite() { (2.0 * max / 2.0).copysign(exact) } else { exact };
    let got = if got.is_infinite() { max.copysign(got) } else { got };
    if exact == 0.0 || got == 0.0 && got.is_sign_negative() != exact.is_sign_negative() {
        return f64::INFINITY;
    }
    let exponent = (exact.abs().to_bits() >> 52) as i32 - 1023;
    (got - exact).abs() / ((exponent - digits + 1).max(least) as f64).exp2()
}

fn error_f32(got: f32, exact: f64) -> f64 {
    // Beyond half a unit above the greatest number it is infinite.
    let exact = if (exact as f32).is_infinite() { f64::INFINITY.copysign(exact) } else { exact };
    // Zeros have the sign of what they stand for.
    if got == 0.0 && exact.abs() < 1e-44 && got.is_sign_negative() == exact.is_sign_negative() {
        return exact.abs() / (-149.0f64).exp2();
    }
    error(got.into(), exact, 24, -149, 128f64.exp2())
}

/// All floats, against the functions of `f64`: `cargo test --release --lib -- --ignored every_float --nocapture`
#[test]
#[ignore = "minutes"]
fn every_float() {
    const PART: u32 = 1 << 16;
    let only = std::env::var("FUNCTION").ok();
    // Slices where there are both, as they are faster.
    let singles = FUNCTIONS.iter().filter(|function| slices().all(|slices| slices.name != function.name)).copied();
    for function in singles.chain(slices()) {
        if only.as_ref().is_some_and(|only| only.split(',').all(|name| name != function.name)) {
            continue;
        }
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get()) as u32;
        let worst = std::thread::scope(|scope| {
            let work = |first: u32| {
                let mut worst = (0.0, 0f32);
                let (mut output, mut exact) = (vec![0.0; PART as usize], vec![0.0; PART as usize]);
                for part in (first..=u32::MAX / PART).step_by(threads as usize) {
                    let input: Vec<f32> = (0..PART).map(|i| f32::from_bits(part * PART + i)).collect();
                    (function.single)(&input, &mut output);
                    let wide: Vec<f64> = input.iter().map(|&x| x.into()).collect();
                    (function.double)(&wide, &mut exact);
                    // A part without a worse one (or NaN) is passed at once.
                    let no_worse = |(&y, &exact): (&f32, &f64)| {
                        let exponent = (exact.to_bits() >> 52 & 0x7ff).max(1023 - 126);
                        (f64::from(y) - exact).abs() <= f64::max(worst.0, 0.4) * f64::from_bits((exponent - 23) << 52)
                    };
                    if output.iter().zip(&exact).fold(true, |all, pair| all & no_worse(pair)) {
                        continue;
                    }
                    for ((&x, &y), &exact) in input.iter().zip(&output).zip(&exact) {
                        let error = error_f32(y, exact);
                        assert!(!error.is_nan(), "{}({x:e}) = {y:e}", function.name);
                        if error > worst.0 {
                            worst = (error, x);
                        }
                    }
                }
                worst
            };
            let helpers: Vec<_> = (0..threads).map(|first| scope.spawn(move || work(first))).collect();
            helpers
                .into_iter()
                .map(|helper| helper.join().unwrap())
                .fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
        });
        println!("{:8} {:.4} ulp at {:e}", function.name, worst.0, worst.1);
        assert!(worst.0 <= function.errors.0, "{}", function.errors.0);
    }
}

/// Microseconds per million numbers at each level, in a slice that stays in the cache.
#[test]
#[ignore = "measures"]
fn times() {
    fn time<T: Real>(function: fn(&[T], &mut [T])) -> f64 {
        let input: Vec<T> =
            (0..8192u32).map(|i| T::of(f64::from(i.wrapping_mul(40503) % 8192) / 1024.0 - 3.99)).collect();
        let mut output = input.clone();
        let runs = (0..3000).map(|_| {
            let start = Instant::now();
            function(black_box(&input), black_box(&mut output));
            start.elapsed().as_secs_f64()
        });
        runs.fold(f64::INFINITY, f64::min) / 8192.0 * 1e12
    }
    println!("microseconds per million of f32 and f64 at each level");
    for function in FUNCTIONS.iter().copied().chain(slices()) {
        print!("{:8}", function.name);
        at_each_level(|| print!("  {:6.0} {:6.0}", time(function.single), time(function.double)));
        println!();
    }
}

/// Numbers of all sizes, more of them near 1.
fn samples<T: Real>(count: u32, random: fn(u64) -> T) -> Vec<T> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state ^ (state >> 29)
    };
    let specials = [
        0.0,
        1.0,
        0.5,
        2.0,
        1e-300,
        5e-324,
        1e-45,
        1e-40,
        1e300,
        3.4e38,
        f64::INFINITY,
        f64::NAN,
        88.72283905,
        88.722_84,
        1e9,
    ];
    let mut all: Vec<T> = specials.iter().flat_map(|&x| [T::of(x), T::of(-x)]).collect();
    for _ in 0..count / 3 {
        all.push(random(next()));
        all.push(T::of((next() % (1 << 24)) as f64 / f64::from(1 << 19) - 16.0));
        all.push(T::of((next() % (1 << 24)) as f64 / f64::from(1 << 12) - 2048.0));
    }
    all
}

#[test]
fn samples_are_right_and_the_same_at_each_level() {
    let count = sized(30_000, 300);
    let (singles, doubles) = (samples(count, |bits| f32::from_bits(bits as u32)), samples(count, f64::from_bits));
    for function in FUNCTIONS.iter().copied().chain(slices()) {
        let (mut single, mut double) = (Vec::new(), Vec::new());
        at_each_level(|| {
            let mut output = vec![0.0; singles.len()];
            (function.single)(&singles, &mut output);
            if single.is_empty() {
                single = output.clone();
            }
            for ((x, y), first) in singles.iter().zip(output).zip(&single) {
                let exact = (function.reference)((*x).into());
                let error = error_f32(y, exact);
                assert!(error <= function.errors.0, "{}({x:e}) = {y:e}, exactly {exact:e}: {error}", function.name);
                assert!(same(y.into(), (*first).into()), "{}({x:e}) = {y:e} or {first:e}", function.name);
            }
            let mut output = vec![0.0; doubles.len()];
            (function.double)(&doubles, &mut output);
            if double.is_empty() {
                double = output.clone();
            }
            for ((x, y), first) in doubles.iter().zip(output).zip(&double) {
                let exact = (function.reference)(*x);
                let error = error(y, exact, 53, -1074, f64::MAX);
                // std's may be wrong as well.
                assert!(
                    error <= function.errors.1 + 1.0,
                    "{}({x:e}) = {y:e}, exactly {exact:e}: {error}",
                    function.name
                );
                assert!(same(y, *first), "{}({x:e}) = {y:e} or {first:e}", function.name);
            }
        });
    }
}

#[test]
fn slices_are_the_same_as_single_numbers() {
    let numbers = samples(sized(30_000, 300), f64::from_bits);
    for slices in slices() {
        let single = FUNCTIONS.iter().find(|function| function.name == slices.name).unwrap();
        let (mut a, mut b) = (vec![0.0; numbers.len()], vec![0.0; numbers.len()]);
        (single.double)(&numbers, &mut a);
        (slices.double)(&numbers, &mut b);
        assert!(a.iter().zip(&b).all(|(a, b)| same(*a, *b)), "{}", slices.name);
    }
}

#[test]
fn special_values() {
    use super::*;
    const INF: f64 = f64::INFINITY;
    type Case = (fn(f64) -> f64, f64, f64);
    let cases: [Case; 38] = [
        (exp, -INF, 0.0),
        (exp, INF, INF),
        (exp, 710.0, INF),
        (exp, -746.0, 0.0),
        (exp, -0.0, 1.0),
        (expm1, -INF, -1.0),
        (expm1, -0.0, -0.0),
        (expm1, INF, INF),
        (sigmoid, -INF, 0.0),
        (sigmoid, 0.0, 0.5),
        (sigmoid, INF, 1.0),
        (tanh, -INF, -1.0),
        (tanh, -0.0, -0.0),
        (sinh, -INF, -INF),
        (sinh, -0.0, -0.0),
        (cosh, -INF, INF),
        (softplus, -INF, 0.0),
        (softplus, INF, INF),
        (log, 0.0, -INF),
        (log, -0.0, -INF),
        (log, -1.0, f64::NAN),
        (log, INF, INF),
        (log1p, -1.0, -INF),
        (log1p, -0.0, -0.0),
        (log1p, f64::MAX, 709.782712893384),
        (asinh, -0.0, -0.0),
        (asinh, -INF, -INF),
        (acosh, 1.0, 0.0),
        (acosh, 0.9, f64::NAN),
        (atanh, -1.0, -INF),
        (atanh, 1.1, f64::NAN),
        (erf, -INF, -1.0),
        (erf, -0.0, -0.0),
        (asin, 1.0, std::f64::consts::FRAC_PI_2),
        (acos, -1.0, std::f64::consts::PI),
        (atan, -INF, -std::f64::consts::FRAC_PI_2),
        (sin, -0.0, -0.0),
        (tan, INF, f64::NAN),
    ];
    for (i, (function, x, y)) in cases.into_iter().enumerate() {
        assert!(same(function(x), y), "case {i}: {x} gives {}", function(x));
    }
    // From the series, in 30 digits.
    assert_eq!(erf(0.5), 0.520_499_877_813_046_5);
    assert_eq!(erf(1.5), 0.966_105_146_475_310_8);
    assert_eq!(erf(1e-10), 1.128_379_167_095_512_6e-10);
    // Subnormal numbers.
    assert_eq!(exp(-103.0f32).to_bits(), 1);
    assert_eq!(sigmoid(-103.9f32).to_bits(), 1);
    assert_eq!(log(f32::from_bits(1)), -103.27893);
}

#[test]
fn pow_is_that_of_c() {
    use super::pow;
    let specials = [0.0, 0.5, 1.0, 2.0, 3.0, 2.5, 1e300, 1e-300, 9007199254740993.0, 5e-324, f64::INFINITY, f64::NAN];
    let specials: Vec<f64> = specials.into_iter().flat_map(|x| [x, -x]).collect();
    for &x in &specials {
        for &y in &specials {
            let (got, exact) = (pow(x, y), x.powf(y));
            assert!(error(got, exact, 53, -1074, f64::MAX) <= 1.0, "{x}^{y} = {got}, not {exact}");
            let (x, y) = (x as f32, y as f32);
            assert!(error_f32(pow(x, y), f64::from(x).powf(y.into())) <= 0.51, "{x}^{y} in f32");
        }
    }
    let (x, y) = (
        samples(sized(20_000, 300), f64::from_bits),
        samples(sized(20_000, 300), |bits| (bits as i64 >> 32) as f64 / 1e8),
    );
    for (&x, &y) in x.iter().zip(y.iter().rev()) {
        let (got, exact) = (pow(x, y), x.powf(y));
        assert!(error(got, exact, 53, -1074, f64::MAX) <= 2.0, "{x:e}^{y:e} = {got:e}, not {exact:e}");
        let (x, y) = (x as f32, y as f32);
        assert!(error_f32(pow(x, y), f64::from(x).powf(y.into())) <= 0.51, "{x}^{y} in f32");
    }
}

/// The ways of single exponents give what [`super::pow`] gives, or are nearer.
#[test]
fn powers_of_one_exponent() {
    let specials = [0.0, f64::INFINITY, f64::NAN, 5e-324, 1e-108, 1e-45, 1e-15, 1e15, 1e103, 1e300];
    let specials = specials.into_iter().flat_map(|x| [x, -x]);
    let numbers: Vec<f64> = specials.chain(samples(sized(20_000, 300), f64::from_bits)).collect();
    let singles = samples(sized(20_000, 300), |bits| f32::from_bits(bits as u32)).into_iter();
    let singles: Vec<f32> = numbers.iter().map(|x| *x as f32).chain(singles).collect();
    type Way<T> = fn(T) -> T;
    let ways: [(f64, Way<f64>, Way<f32>); 2] = [(3.0, super::cube, super::cube), (0.5, super::root, super::root)];
    for (y, way, single) in ways {
        for &x in &numbers {
            let (got, exact) = (way(x), x.powf(y));
            assert!(error(got, exact, 53, -1074, f64::MAX) <= 1.0, "{x:e}^{y} = {got:e}, not {exact:e}");
            assert!(got != 0.0 || got.is_sign_negative() == exact.is_sign_negative(), "{x:e}^{y} = {got}");
        }
        for &x in &singles {
            let (got, exact) = (single(x), f64::from(x).powf(y));
            // What rounding took from a product may be subnormal, and rounded too.
            let bound = if exact.abs() < 1e-30 { 1.0 } else { 0.51 };
            assert!(error_f32(got, exact) <= bound, "{x:e}^{y} = {got:e}, not {exact:e}");
            assert!(got != 0.0 || got.is_sign_negative() == exact.is_sign_negative(), "{x:e}^{y} = {got}");
        }
    }
}

/// A product with the two parts of a sixth is the quotient, and HardSwish what it says of it.
#[test]
fn sixths() {
    let ((high, low), (wide_high, wide_low)) = (super::sixth::<f32>(), super::sixth::<f64>());
    let swish = |x: f64| x * ((x + 3.0) / 6.0).clamp(0.0, 1.0);
    for x in samples(sized(200_000, 300), |bits| (bits >> 11) as f64 * 2f64.powi(-50) - 4.0) {
        let y = x as f32;
        if y.is_normal() && y.abs() < 8.0 {
            assert_eq!(y.mul_add(high, y * low), y / 6.0);
            assert_eq!(x.mul_add(wide_high, x * wide_low), x / 6.0);
        }
        let single = y * ((y + 3.0) / 6.0).clamp(0.0, 1.0);
        let same = |got: f64, want: f64| got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
        assert!(same(super::hard_swish(x), swish(x)) && same(super::hard_swish(y).into(), single.into()), "{x:e}");
    }
}
