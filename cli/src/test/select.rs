//! Which cases are run.

use clap::Args;
use onnxref::LoadOptions;
use onnxref::conformance::Case;
use regex::Regex;

/// The flags that select cases.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Run only cases whose path matches; may be given several times
    #[arg(short = 'k', long = "keep", value_name = "REGEX")]
    keep: Vec<Regex>,

    /// Leave out cases whose path matches
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<Regex>,

    /// Run only cases with any of these operators, such as Gather,Loop
    ///
    /// An operator of another domain is DOMAIN.NAME. Nodes in functions and subgraphs count, whether the model can run
    /// or not. A case whose model can't be read is run too, and fails.
    #[arg(long, value_name = "OP,..", value_delimiter = ',', value_parser = operator)]
    containing: Vec<(String, String)>,
}

impl Selection {
    pub(crate) fn has_name(&self, name: &str) -> bool {
        let matches = |regex: &Regex| regex.is_match(name);
        (self.keep.is_empty() || self.keep.iter().any(matches)) && !self.exclude.iter().any(matches)
    }

    pub(crate) fn has_operators(&self, case: &Case, options: &LoadOptions) -> bool {
        self.containing.is_empty()
            || case.operators(options).map_or(true, |named| self.containing.iter().any(|one| named.contains(one)))
    }
}

/// Domain and name of an operator.
fn operator(text: &str) -> Result<(String, String), String> {
    let (domain, name) = text.rsplit_once("::").or_else(|| text.rsplit_once('.')).unwrap_or(("", text));
    let domain = if domain == "ai.onnx" { "" } else { domain };
    if name.is_empty() { Err("expected the names of operators".into()) } else { Ok((domain.into(), name.into())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_operators() {
        let is = |text, domain: &str, name: &str| assert_eq!(operator(text).unwrap(), (domain.into(), name.into()));
        is("Gather", "", "Gather");
        is("ai.onnx.Gather", "", "Gather");
        is("ai.onnx.ml.Normalizer", "ai.onnx.ml", "Normalizer");
        is("com.microsoft::Gelu", "com.microsoft", "Gelu");
        assert!(operator("").is_err() && operator("com.microsoft.").is_err());
    }
}
