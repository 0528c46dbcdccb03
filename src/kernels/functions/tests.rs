use super::Real;
use crate::kernels::cpu::tests::at_each_level;
use crate::kernels::sized;
use std::hint::black_box;
use std::time::Instant;

struct Function {
    name: &'static str,
    single: fn(&[f32], &mut [f32]),
    double: fn(&[f64], &mut [f64]),
    reference: fn(f64) -> f64,
    /// Maximum error in `f32` and `f64`, in units of the last place.
    errors: (f64, f64),
}

/// A loop for each function, as kernels have them.
macro_rules! functions {
    ($($name:ident, $errors:expr, $reference:expr;)*) => {
        $(mod $name {
            use super::Real;

            #[inline(always)]
            fn body<T: Real>(input: &[T], output: &mut [T]) {
                for (output, &x) in output.iter_mut().zip(input) {
                    *output = crate::kernels::functions::$name(x);
                }
            }
            crate::kernels::cpu::for_each_level! {
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
    exp, (0.8, 1.0), f64::exp;
    expm1, (1.0, 1.0), f64::exp_m1;
    sigmoid, (0.8, 1.0), |x| if x > 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) };
    tanh, (0.9, 1.0), f64::tanh;
    sinh, (0.51, 1.0), f64::sinh;
    cosh, (0.51, 1.0), f64::cosh;
    softplus, (0.51, 2.0), |x| if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() };
    log, (0.9, 0.7), f64::ln;
    log1p, (0.95, 1.0), f64::ln_1p;
    asinh, (0.51, 1.0), |x| super::asinh(x);
    acosh, (0.51, 1.0), |x| super::acosh(x);
    atanh, (0.51, 1.0), |x| super::atanh(x);
    erf, (1.0, 1.0), |x| super::erf(x);
    asin, (0.51, 1.0), f64::asin;
    acos, (0.51, 1.0), f64::acos;
    atan, (0.51, 1.0), f64::atan;
    sin, (0.6, 1.0), f64::sin;
    cos, (0.6, 1.0), f64::cos;
    tan, (0.6, 1.0), f64::tan;
}

/// The functions that have slices of their own.
const SLICES: &[Function] = &[
    Function { name: "sin", single: super::sin_all, double: super::sin_all, reference: f64::sin, errors: (0.6, 1.0) },
    Function { name: "cos", single: super::cos_all, double: super::cos_all, reference: f64::cos, errors: (0.6, 1.0) },
    Function { name: "tan", single: super::tan_all, double: super::tan_all, reference: f64::tan, errors: (0.6, 1.0) },
];

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
    let singles = FUNCTIONS.iter().filter(|function| SLICES.iter().all(|slices| slices.name != function.name));
    for function in singles.chain(SLICES) {
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
    for function in FUNCTIONS.iter().chain(SLICES) {
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
    for function in FUNCTIONS.iter().chain(SLICES) {
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
    for slices in SLICES {
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
