//! Sizes that follow from symbols.

use super::Dim;
use crate::error::quote;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt::{self, Display};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A whole number that follows from symbols: `past + seq`, `2*N`, `H*W - 1`. Equal formulas are equal numbers; different
/// ones may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// No symbols: runs compute with these, so they take no allocation.
    Number(i64),
    /// Products that are added up, of which at least one has symbols: different ones, in order, none of them 0 times.
    Sum(Arc<[Term]>),
}

/// A number times symbols, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    symbols: SmallVec<[Symbol; 1]>,
    times: i64,
}

/// A number that isn't below 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Symbol {
    /// The size that a model has a name for.
    Named(Arc<str>),
    /// A quotient that leaves a remainder, or the larger one of two numbers: its text, and whether it follows from names alone.
    Made(Arc<str>, bool),
    /// The size of one value, and what it is if no size is 0.
    Own(u64, Likely),
}

/// It counts in no comparison.
#[derive(Debug, Clone)]
struct Likely(Option<Arc<Formula>>);

impl PartialEq for Likely {
    fn eq(&self, _: &Likely) -> bool {
        true
    }
}

impl Eq for Likely {}

impl PartialOrd for Likely {
    fn partial_cmp(&self, other: &Likely) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Likely {
    fn cmp(&self, _: &Likely) -> Ordering {
        Ordering::Equal
    }
}

impl Symbol {
    fn memory(&self) -> usize {
        size_of::<Symbol>()
            + match self {
                Symbol::Named(text) | Symbol::Made(text, _) => 2 * size_of::<usize>() + text.len(),
                Symbol::Own(_, likely) => likely.0.as_ref().map_or(0, |likely| likely.memory()),
            }
    }
}

/// A name that could be taken for something else is in quotes.
impl Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |name: &str| {
            let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
            starts && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        match self {
            Symbol::Named(name) if !is_plain(name) => f.write_str(&quote(name)),
            Symbol::Named(text) | Symbol::Made(text, _) => f.write_str(text),
            // As long for each, so that whether a text is too long doesn't depend on how many there are.
            Symbol::Own(number, _) => write!(f, "?{number:010}"),
        }
    }
}

impl Formula {
    /// Longer formulas are unknown numbers.
    const TERMS: usize = 8;
    /// The same of the symbols of a product, and of the text of a quotient.
    const SYMBOLS: usize = 8;
    const TEXT: usize = 80;

    /// What a dimension is, if it is known.
    pub(crate) fn of(dim: &Dim) -> Option<Formula> {
        match dim {
            Dim::Fixed(size) => i64::try_from(*size).ok().map(Formula::from),
            Dim::Symbol(name) => Some(Formula::symbol(Symbol::Named(name.as_str().into()))),
            Dim::Formula(formula) => Some(formula.clone()),
            Dim::Unknown => None,
        }
    }

    fn symbol(symbol: Symbol) -> Formula {
        let symbols = [symbol].into_iter().collect();
        Formula(Kind::Sum([Term { symbols, times: 1 }].into()))
    }

    /// The size of a value of which nothing is certain but that it is equal to itself. It may be known what it is if no size is
    /// 0.
    pub(crate) fn own(likely: Option<Formula>) -> Formula {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // None is inside another one.
        let likely = likely.and_then(|likely| likely.likely()).map(Arc::new);
        Formula::symbol(Symbol::Own(COUNT.fetch_add(1, Relaxed), Likely(likely)))
    }

    /// What it is if no size is 0, as far as names say it.
    pub(crate) fn likely(&self) -> Option<Formula> {
        let likely = |symbol: &Symbol| match symbol {
            Symbol::Own(_, likely) => likely.0.as_deref().cloned(),
            Symbol::Made(_, false) => None,
            named => Some(Formula::symbol(named.clone())),
        };
        self.terms().iter().try_fold(Formula::from(0), |sum, Term { symbols, times }| {
            let product = symbols.iter().try_fold(Formula::from(*times), |all, symbol| all.times(&likely(symbol)?));
            sum.plus(&product?)
        })
    }

    /// Whether it follows from names alone, whatever they stand for.
    pub(super) fn is_certain(&self) -> bool {
        let certain = |symbol: &Symbol| match symbol {
            Symbol::Named(_) => true,
            Symbol::Made(_, certain) => *certain,
            Symbol::Own(..) => false,
        };
        self.terms().iter().flat_map(|term| &term.symbols).all(certain)
    }

    /// A number that is made of this one, as a symbol of its own, unless its text is too long.
    fn made(&self, text: &str) -> Option<Formula> {
        (text.len() <= Formula::TEXT).then(|| Formula::symbol(Symbol::Made(text.into(), self.is_certain())))
    }

    pub(super) fn memory(&self) -> usize {
        let Kind::Sum(terms) = &self.0 else { return size_of::<Formula>() };
        let symbols = terms.iter().flat_map(|term| &term.symbols);
        size_of::<Formula>() + terms.len() * size_of::<Term>() + symbols.map(Symbol::memory).sum::<usize>()
    }

    /// The products that are added up: none for 0.
    fn terms(&self) -> Terms {
        match &self.0 {
            Kind::Number(number) => {
                let term = Term { symbols: SmallVec::new(), times: *number };
                Some(term).filter(|_| *number != 0).into_iter().collect()
            }
            Kind::Sum(terms) => terms.iter().cloned().collect(),
        }
    }

    /// The number, if it depends on no symbol.
    pub(crate) fn number(&self) -> Option<i64> {
        if let Kind::Number(number) = self.0 { Some(number) } else { None }
    }

    /// The dimension of this size.
    pub(crate) fn dim(&self) -> Dim {
        match &self.0 {
            Kind::Number(size) => Dim::of(*size),
            Kind::Sum(terms) => match &**terms {
                [Term { symbols, times: 1 }] => match &**symbols {
                    [Symbol::Named(name)] => Dim::Symbol(name.to_string()),
                    _ => Dim::Formula(self.clone()),
                },
                _ => Dim::Formula(self.clone()),
            },
        }
    }

    /// The sum; `None` if it is too long, or beyond int64.
    pub(crate) fn plus(&self, other: &Formula) -> Option<Formula> {
        if let (Kind::Number(own), Kind::Number(other)) = (&self.0, &other.0) {
            return own.checked_add(*other).map(Formula::from);
        }
        let mut sum = Sum(self.terms());
        other.terms().into_iter().try_for_each(|term| sum.add(term))?;
        Some(sum.finish())
    }

    /// The difference, as [`Formula::plus`].
    pub(crate) fn minus(&self, other: &Formula) -> Option<Formula> {
        self.plus(&other.times(&Formula::from(-1))?)
    }

    /// The product, as [`Formula::plus`].
    pub(crate) fn times(&self, other: &Formula) -> Option<Formula> {
        if let (Kind::Number(own), Kind::Number(other)) = (&self.0, &other.0) {
            return own.checked_mul(*other).map(Formula::from);
        }
        let (mut product, others) = (Sum::default(), other.terms());
        for own in self.terms() {
            for other in &others {
                let mut symbols = own.symbols.clone();
                symbols.extend(other.symbols.iter().cloned());
                symbols.sort();
                if symbols.len() > Formula::SYMBOLS {
                    return None;
                }
                product.add(Term { symbols, times: own.times.checked_mul(other.times)? })?;
            }
        }
        Some(product.finish())
    }

    /// The quotient, if it leaves no remainder whatever the symbols are. A divisor that is a sum must be equal.
    pub(crate) fn over(&self, other: &Formula) -> Option<Formula> {
        let others = other.terms();
        let divisor = match &*others {
            [] => return None,
            [term] => term,
            _ => return (self == other).then(|| Formula::from(1)),
        };
        let mut quotient = Sum::default();
        for Term { mut symbols, times } in self.terms() {
            for symbol in &divisor.symbols {
                symbols.remove(symbols.iter().position(|own| own == symbol)?);
            }
            if times.checked_rem(divisor.times)? != 0 {
                return None;
            }
            quotient.add(Term { symbols, times: times.checked_div(divisor.times)? })?;
        }
        Some(quotient.finish())
    }

    /// Whether it is certainly not below 0, as no symbol is.
    pub(crate) fn is_size(&self) -> bool {
        match &self.0 {
            Kind::Number(number) => *number >= 0,
            Kind::Sum(terms) => terms.iter().all(|term| term.times >= 0),
        }
    }

    /// Whether it is certainly above 0.
    pub(crate) fn is_positive(&self) -> bool {
        self.is_size() && self.terms().iter().any(|term| term.symbols.is_empty())
    }

    /// Whether it is 0 wherever `other`, which isn't below 0, is.
    pub(crate) fn vanishes_with(&self, other: &Formula) -> bool {
        let own = self.terms();
        // Where a sum is 0, a symbol of each product is.
        let brings = |term: &Term| own.iter().all(|own| term.symbols.iter().all(|symbol| own.symbols.contains(symbol)));
        other.terms().iter().any(brings)
    }

    /// The number, or 0 if that is below it.
    pub(crate) fn at_least_0(self) -> Option<Formula> {
        if self.is_size() {
            return Some(self);
        }
        let text = format!("max({self}, 0)");
        match self.number() {
            Some(_) => Some(Formula::from(0)),
            None => self.made(&text),
        }
    }

    /// The larger one of two numbers, if it is certain which one is.
    pub(crate) fn larger(&self, other: &Formula) -> Option<Formula> {
        match self.minus(other)? {
            above if above.is_size() => Some(self.clone()),
            _ => other.minus(self)?.is_size().then(|| other.clone()),
        }
    }

    /// As [`Formula::larger`], the smaller one.
    pub(crate) fn smaller(&self, other: &Formula) -> Option<Formula> {
        let larger = self.larger(other)?;
        Some(if larger == *self { other.clone() } else { self.clone() })
    }

    /// Whether two numbers are equal, if it is certain: no symbol is below 0.
    pub(crate) fn equals(&self, other: &Formula) -> Option<bool> {
        let (difference, one) = (self.minus(other)?, Formula::from(1));
        match difference.number() {
            Some(difference) => Some(difference == 0),
            None => {
                let differ = difference.minus(&one)?.is_size() || other.minus(self)?.minus(&one)?.is_size();
                differ.then_some(false)
            }
        }
    }

    /// The quotient, rounded toward 0. A run that divides by 0 fails.
    pub(crate) fn divided(&self, by: &Formula) -> Option<Formula> {
        match (self.number(), by.number()) {
            (Some(own), Some(by)) => own.checked_div(by).map(Formula::from),
            (None, Some(by)) if self.is_size() => self.floor_over(by),
            _ => self.over(by),
        }
    }

    /// The quotient by a number above 0, rounded down. It must not be below 0 in a run that computes it: it may be a symbol.
    pub(crate) fn floor_over(&self, by: i64) -> Option<Formula> {
        match self.number() {
            _ if by <= 0 => None,
            Some(number) => Some(Formula::from(number.div_euclid(by))),
            None => self.over(&Formula::from(by)).or_else(|| {
                let text = format!("floor(({self})/{by})");
                self.made(&text)
            }),
        }
    }
}

/// A formula that is being made.
#[derive(Default)]
struct Sum(Terms);

type Terms = SmallVec<[Term; Formula::TERMS]>;

impl Sum {
    fn add(&mut self, term: Term) -> Option<()> {
        match self.0.binary_search_by(|own| own.symbols.cmp(&term.symbols)) {
            _ if term.times == 0 => {}
            Ok(at) => {
                let own = self.0.get_mut(at)?;
                own.times = own.times.checked_add(term.times)?;
                if own.times == 0 {
                    self.0.remove(at);
                }
            }
            Err(_) if self.0.len() == Formula::TERMS => return None,
            Err(at) => self.0.insert(at, term),
        }
        Some(())
    }

    fn finish(self) -> Formula {
        match &*self.0 {
            [] => Formula::from(0),
            [Term { symbols, times }] if symbols.is_empty() => Formula::from(*times),
            _ => Formula(Kind::Sum(self.0.into_iter().collect())),
        }
    }
}

impl From<i64> for Formula {
    fn from(number: i64) -> Formula {
        Formula(Kind::Number(number))
    }
}

impl Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = match &self.0 {
            Kind::Number(number) => return write!(f, "{number}"),
            Kind::Sum(terms) => terms,
        };
        // What is subtracted comes after what is added, and a number at the end.
        let mut terms: SmallVec<[&Term; Formula::TERMS]> = terms.iter().collect();
        terms.sort_by_key(|term| (term.symbols.is_empty(), term.times < 0));
        for (k, Term { symbols, times }) in terms.into_iter().enumerate() {
            f.write_str(match (k, *times < 0) {
                (0, true) => "-",
                (0, false) => "",
                (_, true) => " - ",
                (_, false) => " + ",
            })?;
            let times = times.unsigned_abs();
            let symbols = symbols.iter().map(Symbol::to_string);
            let number = (times != 1 || symbols.len() == 0).then(|| times.to_string());
            f.write_str(&number.into_iter().chain(symbols).collect::<Vec<_>>().join("*"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str) -> Formula {
        Formula::of(&Dim::Symbol(name.to_string())).unwrap()
    }

    fn n() -> Formula {
        symbol("N")
    }

    fn number(value: i64) -> Formula {
        Formula::from(value)
    }

    #[track_caller]
    fn is(formula: Option<Formula>, text: &str) {
        assert_eq!(formula.map_or("?".to_string(), |formula| formula.to_string()), text);
    }

    #[test]
    fn sums_and_products() {
        let seq = symbol("seq");
        let sum = n().plus(&seq).unwrap();
        is(Some(sum.clone()), "N + seq");
        assert_eq!(Some(sum.clone()), seq.plus(&n()));
        is(sum.minus(&n()), "seq");
        is(sum.minus(&sum), "0");
        is(sum.minus(&number(3)), "N + seq - 3");
        is(number(1).minus(&sum), "-N - seq + 1");
        is(sum.times(&sum), "N*N + 2*N*seq + seq*seq");
        is(sum.times(&number(0)), "0");
        is(n().plus(&number(i64::MAX)).unwrap().plus(&number(1)), "?");
        is(n().times(&number(i64::MAX)).unwrap().times(&number(2)), "?");
    }

    #[test]
    fn formulas_stay_short() {
        let many = (0..9).try_fold(number(0), |sum, k| sum.plus(&symbol(&k.to_string())));
        is(many, "?");
        let high = (0..9).try_fold(number(1), |product, _| product.times(&n()));
        is(high, "?");
        let mut deep = n();
        let rounds = (0..20).take_while(|_| deep.floor_over(2).map(|next| deep = next).is_some()).count();
        assert!((2..12).contains(&rounds), "{rounds}");
    }

    #[test]
    fn quotients() {
        let product = n().times(&symbol("H")).unwrap().times(&number(6)).unwrap();
        is(product.over(&number(3)), "2*H*N");
        is(product.over(&n()), "6*H");
        is(product.over(&number(4)), "?");
        is(product.plus(&number(3)).unwrap().over(&n()), "?");
        is(product.plus(&number(3)).unwrap().over(&number(-3)), "-2*H*N - 1");
        is(n().over(&number(0)), "?");
        is(number(i64::MIN).over(&number(-1)), "?");
        is(n().plus(&number(1)).unwrap().floor_over(2), "floor((N + 1)/2)");
        is(number(-3).floor_over(2), "-2");
        is(n().floor_over(0), "?");
        is(number(-7).divided(&number(2)), "-3");
        is(number(7).divided(&number(0)), "?");
        is(n().divided(&number(2)), "floor((N)/2)");
        is(n().minus(&number(1)).unwrap().divided(&number(2)), "?");
        is(n().at_least_0(), "N");
        is(n().minus(&number(1)).unwrap().at_least_0(), "max(N - 1, 0)");
        is(number(-3).at_least_0(), "0");
        is(product.divided(&number(-2)), "?");
    }

    #[test]
    fn comparisons() {
        let more = n().plus(&number(1)).unwrap();
        is(n().larger(&more), "N + 1");
        is(n().smaller(&more), "N");
        is(number(3).larger(&number(-4)), "3");
        is(number(-1).smaller(&n()), "-1");
        is(n().larger(&number(2)), "?");
        is(n().smaller(&symbol("M")), "?");
        assert_eq!(n().equals(&n()), Some(true));
        assert_eq!(n().equals(&more), Some(false));
        assert_eq!(n().equals(&number(-1)), Some(false));
        assert_eq!(number(-1).equals(&n()), Some(false));
        assert_eq!(n().equals(&number(0)), None);
        assert_eq!(n().equals(&symbol("M")), None);
    }

    /// A name isn't taken for a formula that is written like it.
    #[test]
    fn names() {
        let half = n().floor_over(2).unwrap();
        assert_ne!(half, symbol("floor((N)/2)"));
        assert_ne!(half.dim(), Dim::Symbol("floor((N)/2)".to_string()));
        let sum = symbol("a").plus(&symbol("b")).unwrap();
        assert_ne!(sum.floor_over(2), symbol("a + b").floor_over(2));
        assert_ne!(
            symbol("3").plus(&number(4)).unwrap().floor_over(2),
            symbol("4").plus(&symbol("3")).unwrap().floor_over(2)
        );
        is(symbol("a + b").times(&number(2)), "2*\"a + b\"");
        is(symbol("a + b").floor_over(2), "floor((\"a + b\")/2)");
        is(symbol("seq?").floor_over(2).unwrap().likely(), "floor((\"seq?\")/2)");
    }

    /// Sizes of their own are equal to themselves, whatever they may be.
    #[test]
    fn own_sizes() {
        let own = || Formula::own(Some(n()));
        let (one, other) = (own(), own());
        assert_ne!(one, other);
        assert_eq!(one.minus(&one), Some(number(0)));
        let twice = one.plus(&other).unwrap();
        is(twice.likely(), "2*N");
        assert_eq!(twice.dim().to_string(), "2*N");
        assert!(!twice.is_certain() && n().is_certain());
        let half = one.floor_over(2).unwrap();
        assert!(!half.is_certain() && half.likely().is_none() && half == one.floor_over(2).unwrap());
        assert_ne!(half, other.floor_over(2).unwrap());
        assert_eq!(Formula::own(None).dim().to_string(), "?");
        is(n().floor_over(2).unwrap().likely(), "floor((N)/2)");
    }

    #[test]
    fn zeros() {
        let (product, sum) = (n().times(&symbol("M")).unwrap(), n().plus(&symbol("M")).unwrap());
        assert!(product.vanishes_with(&n()) && product.vanishes_with(&product) && product.vanishes_with(&sum));
        assert!(n().vanishes_with(&n().times(&number(3)).unwrap()) && number(0).vanishes_with(&n()));
        assert!(!n().vanishes_with(&product) && !sum.vanishes_with(&n()) && !number(2).vanishes_with(&n()));
        assert!(!n().vanishes_with(&n().floor_over(2).unwrap()));
        assert!(number(1).is_positive() && n().plus(&number(1)).unwrap().is_positive());
        assert!(!n().is_positive() && !number(0).is_positive() && !n().minus(&number(1)).unwrap().is_positive());
    }

    #[test]
    fn dimensions() {
        for dim in [Dim::Fixed(3), Dim::Symbol("N".into()), n().plus(&number(1)).unwrap().dim()] {
            assert_eq!(Formula::of(&dim).unwrap().dim(), dim);
        }
        assert_eq!(number(-1).dim(), Dim::Unknown);
        assert_eq!(Formula::of(&Dim::Unknown), None);
    }
}
