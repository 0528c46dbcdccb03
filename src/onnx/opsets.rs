//! Reads the opsets that a model or a function imports.

use super::proto::OperatorSetIdProto;
use crate::error::{Error, Result, quote};
use crate::files::ModelFiles;
use crate::graph::Draft;
use crate::registry::{Newest, Registry};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// `ai.onnx` and the empty domain are one.
pub(super) fn domain_of(domain: Option<&str>) -> &str {
    domain.filter(|domain| *domain != "ai.onnx").unwrap_or("")
}

/// A domain as errors and notes name it.
pub(super) fn domain_name(domain: &str) -> String {
    quote(if domain.is_empty() { "ai.onnx" } else { domain })
}

/// The opsets that a model imports; below IR version 3 there is one.
pub(super) fn model_opsets(
    imports: &[OperatorSetIdProto],
    ir_version: i64,
    registry: &Registry,
    files: &ModelFiles,
) -> Result<Vec<(String, i64)>> {
    match imports {
        [] if ir_version < 3 => Ok(vec![(String::new(), 1)]),
        [] => Err(Error::model(format!("opset_import is missing: IR version {ir_version} needs it"))),
        _ if ir_version < 3 => {
            Err(Error::model(format!("opset_import is not allowed under IR version {ir_version}: it came with 3")))
        }
        _ => opsets(imports, registry, files),
    }
}

/// The opsets that a model or a function imports.
pub(super) fn opsets(
    imports: &[OperatorSetIdProto],
    registry: &Registry,
    files: &ModelFiles,
) -> Result<Vec<(String, i64)>> {
    let mut opsets: Vec<(String, i64)> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for import in imports {
        files.budget.take(256 + 2 * import.domain.as_ref().map_or(0, String::len) as u64)?;
        let domain = domain_of(import.domain.as_deref());
        let version = import.version.unwrap_or(0);
        if let Some(Newest::Standard(newest)) = registry.newest(domain)
            && version > newest
        {
            let name = domain_name(domain);
            let text =
                format!("opset_import has version {version} of domain {name}: {newest} is the newest that is known");
            let error = Error::unsupported(text).value(version);
            return Err(error.at(|place| place.domain = Some(domain.to_string())));
        }
        // If there are several versions, the highest counts.
        match known.entry(domain) {
            Entry::Vacant(place) => {
                place.insert(opsets.len());
                opsets.push((domain.to_string(), version));
            }
            Entry::Occupied(place) => {
                let first = opsets.get_mut(*place.get());
                first.into_iter().for_each(|(_, first)| *first = version.max(*first));
            }
        }
    }
    Ok(opsets)
}

/// Notes harmless oddities in the imports of a model.
pub(super) fn note_opsets(
    imports: &[OperatorSetIdProto],
    opsets: &Opsets,
    draft: &mut Draft,
    files: &ModelFiles,
) -> Result<()> {
    for import in imports {
        let (domain, version) = (domain_of(import.domain.as_deref()), import.version.unwrap_or(0));
        match opsets.get(domain) {
            Some(highest) if version < highest => {
                let name = domain_name(domain);
                let text =
                    format!("opset_import has versions {version} and {highest} of domain {name}: {highest} counts");
                draft.note(text, &files.budget)?;
            }
            _ if version <= 0 => {
                let name = domain_name(domain);
                let text = format!("opset_import has version {version} of domain {name}: versions start at 1");
                draft.note(text, &files.budget)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Opsets by domain: of the model, or of a function.
#[derive(Default)]
pub(super) struct Opsets {
    /// The version of `ai.onnx`, which most nodes use: comparing empty names is slow.
    standard: Option<i64>,
    others: HashMap<String, i64>,
}

impl Opsets {
    pub(super) fn get(&self, domain: &str) -> Option<i64> {
        if domain.is_empty() { self.standard } else { self.others.get(domain).copied() }
    }
}

impl FromIterator<(String, i64)> for Opsets {
    fn from_iter<I: IntoIterator<Item = (String, i64)>>(imports: I) -> Opsets {
        let mut opsets = Opsets::default();
        for (domain, version) in imports {
            if domain.is_empty() {
                opsets.standard = Some(version);
            } else {
                opsets.others.insert(domain, version);
            }
        }
        opsets
    }
}
