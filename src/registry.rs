//! From (domain, operator, opset) to the operator version that applies and its implementation.

use crate::error::{Error, Kind, Remedy, Result, operator_label};
use crate::limits::Budget;
use crate::operator::{Compatibility, Implementation, LoadCustom, Make, NOT_IMPLEMENTED, Resolved, Resolver};
use crate::ops;
use crate::schema::{self, Schema};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::Arc;

/// The operators that a model may use: those of the standard that are implemented, and a user's own.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    custom: Vec<(Arc<Schema>, LoadCustom)>,
    pub(crate) compatibility: Compatibility,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let custom: Vec<String> = self.custom.iter().map(|(schema, _)| schema.label()).collect();
        f.debug_struct("Registry").field("custom", &custom).field("compatibility", &self.compatibility).finish()
    }
}

impl Registry {
    /// Adds an operator version. It overrides a standard one of the same domain and name.
    pub(crate) fn add(&mut self, schema: Schema, load: LoadCustom) -> Result<()> {
        let same = |other: &Schema| {
            (&other.domain, &other.name, other.since_version) == (&schema.domain, &schema.name, schema.since_version)
        };
        if self.custom.iter().any(|(other, _)| same(other)) {
            return Err(Error::input(format!("the operator {} is added twice", schema.label())));
        }
        self.custom.push((Arc::new(schema), load));
        Ok(())
    }

    /// The newest version up to the opset; or the first one, if newer operators are accepted.
    pub(crate) fn resolve(&self, domain: &str, name: &str, opset: i64) -> Result<Resolved> {
        let compatibility = self.compatibility;
        let own = |schema: &Schema| schema.domain == domain && schema.name == name;
        let ruling = self.custom.iter().filter(|(schema, _)| own(schema) && schema.since_version <= opset);
        if let Some((schema, load)) = ruling.max_by_key(|(schema, _)| schema.since_version) {
            return Ok(Resolved::new(schema.clone(), Make::Custom(load.clone()), compatibility));
        }
        let later = self.custom.iter().filter(|(schema, _)| own(schema)).min_by_key(|(s, _)| s.since_version);
        if let Some((schema, load)) = later.filter(|_| schema::versions(domain, name).is_empty()) {
            if compatibility.newer_operators {
                return Ok(Resolved::new(schema.clone(), Make::Custom(load.clone()), compatibility));
            }
            let (label, since) = (operator_label(domain, name), schema.since_version);
            let text = format!("{label} is not in opset {opset}: it came with opset {since}");
            return Err(Error::model(text).with_remedy(Remedy::Allow("newer_operators")));
        }
        if schema::newest(domain).is_none() && self.custom.iter().any(|(schema, _)| schema.domain == domain) {
            return Err(Error::unsupported(format!(
                "{} is not among the operators that were added",
                operator_label(domain, name)
            )));
        }
        let first = || schema::versions(domain, name).first().map_or(opset, |(first, _)| *first);
        let opset = if compatibility.newer_operators { first().max(opset) } else { opset };
        let schema = schema::resolve(domain, name, opset).map_err(|error| {
            let newer = first() > opset && error.kind() == Kind::Model;
            if newer { error.with_remedy(Remedy::Allow("newer_operators")) } else { error }
        })?;
        // Most names differ in length; comparing domains, which are empty, is slow.
        let implementation = ops::all().find(|i| i.name == name && i.domain == domain);
        let runs = |i: &&Implementation| i.versions.contains(&schema.since_version) || !i.runs();
        let make = implementation.filter(runs).map(|implementation| implementation.make.clone());
        let make = make.unwrap_or(Make::Missing(|_| Ok(()), NOT_IMPLEMENTED));
        Ok(Resolved::new(Arc::new(schema), make, compatibility))
    }

    /// The newest known opset version of a domain; `None` for an unknown domain.
    pub(crate) fn newest(&self, domain: &str) -> Option<Newest> {
        match schema::newest(domain) {
            Some(version) => Some(Newest::Standard(version)),
            None => self.custom.iter().any(|(schema, _)| schema.domain == domain).then_some(Newest::Custom),
        }
    }
}

/// The operators that a model names, each looked up once.
#[derive(Default)]
pub(crate) struct Lookup {
    hasher: RandomState,
    /// By the hash of domain, name and opset.
    known: HashMap<u64, Vec<Known>, BuildHasherDefault<Hashed>>,
}

/// The hash of a key that is one.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

struct Known {
    domain: String,
    name: String,
    opset: Option<i64>,
    found: Found,
}

/// What was found for an operator.
#[derive(Clone)]
pub(crate) struct Found {
    /// Its version, if the table has one that applies.
    pub(crate) resolved: Option<Arc<Resolved>>,
    /// Its number among those that can't run.
    pub(crate) unresolved: Option<usize>,
}

impl Lookup {
    fn key(&self, domain: &str, name: &str, opset: Option<i64>) -> u64 {
        let opset = opset.unwrap_or(i64::MIN);
        // Few parts are hashed faster.
        if domain.is_empty() {
            self.hasher.hash_one((name, opset))
        } else {
            self.hasher.hash_one((domain, name, opset))
        }
    }

    /// What was found under an opset.
    pub(crate) fn get(&self, domain: &str, name: &str, opset: Option<i64>) -> Option<&Found> {
        let mut known = self.known.get(&self.key(domain, name, opset))?.iter();
        // Comparing empty strings is slow.
        let same = |other: &str| if other.is_empty() { domain.is_empty() } else { other == domain };
        known.find(|known| known.name == name && known.opset == opset && same(&known.domain)).map(|known| &known.found)
    }

    pub(crate) fn insert(&mut self, domain: &str, name: &str, opset: Option<i64>, found: Found) {
        let known = self.known.entry(self.key(domain, name, opset)).or_default();
        known.push(Known { domain: domain.to_string(), name: name.to_string(), opset, found });
    }
}

/// The library's own operators, for nodes that no file has: a user's operator doesn't take the place of one there.
pub(crate) struct Own<'a> {
    known: RefCell<Lookup>,
    budget: &'a Budget,
}

impl<'a> Own<'a> {
    pub(crate) fn new(budget: &'a Budget) -> Own<'a> {
        Own { known: RefCell::default(), budget }
    }
}

impl Resolver for Own<'_> {
    fn resolve(&self, domain: &str, name: &str, opset: i64) -> Result<Arc<Resolved>> {
        let mut known = self.known.borrow_mut();
        if let Some(resolved) = known.get(domain, name, Some(opset)).and_then(|found| found.resolved.clone()) {
            return Ok(resolved);
        }
        self.budget.take(Resolved::BYTES)?;
        let resolved = Arc::new(Registry::default().resolve(domain, name, opset)?);
        known.insert(domain, name, Some(opset), Found { resolved: Some(resolved.clone()), unresolved: None });
        Ok(resolved)
    }

    fn budget(&self) -> &Budget {
        self.budget
    }
}

/// The newest version of a domain.
pub(crate) enum Newest {
    /// A domain of the standard, up to this version.
    Standard(i64),
    /// A user's domain: any version.
    Custom,
}

/// An operator and its versions that run here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Support {
    /// The domain; empty for `ai.onnx`.
    pub domain: &'static str,
    /// The operator.
    pub name: &'static str,
    /// The versions that run, oldest first.
    pub versions: Vec<i64>,
}

/// The operators of the standard that run here, by name. [`experimental_operators`](schema::experimental_operators) has
/// those of old releases.
///
/// ```
/// let gather = onnxref::supported().into_iter().find(|s| s.name == "Gather").unwrap();
/// assert_eq!(gather.versions, [1, 11, 13]);
/// ```
pub fn supported() -> Vec<Support> {
    let in_standard = |i: &Implementation, version: i64| {
        schema::versions(i.domain, i.name).iter().any(|(since, _)| *since == version)
    };
    let support = |i: &Implementation| Support {
        domain: i.domain,
        name: i.name,
        versions: i.versions.iter().copied().filter(|version| in_standard(i, *version)).collect(),
    };
    let mut list: Vec<Support> = ops::all().map(support).filter(|support| !support.versions.is_empty()).collect();
    list.sort_by_key(|support| (support.domain, support.name));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_implementation_is_a_version_of_the_standard() {
        for implementation in ops::all() {
            assert!(implementation.versions.is_sorted());
            for version in implementation.versions {
                let resolved = Registry::default().resolve(implementation.domain, implementation.name, *version);
                assert_eq!(resolved.map(|r| r.schema.since_version).ok(), Some(*version), "{}", implementation.name);
            }
        }
    }

    #[test]
    fn the_newest_version_that_is_not_newer_rules() {
        let version = |opset| Registry::default().resolve("", "Gather", opset).map(|r| r.schema.since_version).ok();
        assert_eq!([1, 10, 11, 12, 13, 28].map(version), [Some(1), Some(1), Some(11), Some(11), Some(13), Some(13)]);
    }

    #[test]
    fn failures() {
        let error = |name, opset| Registry::default().resolve("", name, opset).map(|_| ()).unwrap_err();
        let missing = Registry::default().resolve("ai.onnx.preview.training", "Gradient", 1).unwrap();
        assert_eq!((missing.schema.since_version, missing.label.version), (1, Some(1)));
        let why = missing.missing().unwrap();
        assert_eq!(
            (why.kind(), why.to_string().as_str()),
            (Kind::Unsupported, "onnxref doesn't differentiate graphs: export the gradient as a graph of its own")
        );
        let newer = error("GatherElements", 10);
        assert_eq!(format!("{newer:#}"), "GatherElements is not in opset 10: it came with opset 11");
        assert_eq!(newer.remedy(), Some(Remedy::Allow("newer_operators")));
        // It was deprecated after it came, and runs.
        let old = Registry::default().resolve("", "GroupNormalization", 19).unwrap();
        assert_eq!(old.schema.since_version, 18);
        for (name, opset, text) in [
            ("Upsample", 10, "Upsample is not in opset 10: it was removed in opset 10 and replaced by Resize"),
            ("Affine", 10, "Affine was an experimental operator, which ONNX dropped in release 1.5"),
            ("ATen", 7, "ATen was an experimental operator, which ONNX dropped in release 1.5"),
        ] {
            assert_eq!(error(name, opset).to_string(), text);
        }
        assert_eq!(error("Affine", 10).kind(), Kind::Unsupported);
    }

    #[test]
    fn experimental_operators_run_and_are_no_operators_of_the_standard() {
        for name in schema::experimental_operators() {
            assert!(Registry::default().resolve("", name, 8).unwrap().missing().is_none(), "{name}");
            let versions = supported().into_iter().find(|support| support.name == name).map(|support| support.versions);
            assert!(versions.unwrap_or_default().iter().all(|version| *version >= 9), "{name}");
        }
    }
}
