//! `onnxref ops`: lists the operators of the standard, or explains one.

mod about;
mod changes;
mod document;
mod explain;
#[cfg(test)]
mod page;
mod types;

use crate::failure::Failure;
use crate::options::Completed;
use crate::{Global, json, print};
use about::About;
use clap::Args;
use onnxref::schema::{self, Schema};
use onnxref::{Kind, Support, quote, supported};
use std::collections::HashMap;

/// List the operators of the standard and what runs here, or explain one
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onnxref ops Gather              inputs, attributes, versions, an example
  onnxref ops Gather --opset 12   as of opset 12
  onnxref ops scatter             operators whose names contain \"scatter\"
  onnxref ops --missing           what doesn't run here
  onnxref ops --json              everything, as data

Exit status:
  0  success
  2  wrong usage: an unknown operator or domain, an opset beyond the newest")]
pub(crate) struct Arguments {
    /// An operator's exact name, such as Gather or ai.onnx.ml.Scaler; or a part of names, in any case
    #[arg(value_parser = Completed(names), hide_possible_values = true)]
    operator: Option<String>,

    /// List only operators of which some version doesn't run here
    #[arg(long)]
    missing: bool,

    /// List only operators of which some version runs here
    #[arg(long)]
    implemented: bool,

    /// List only operators of this domain
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,

    /// The versions that apply at opset N of the domain (ai.onnx if --domain doesn't name another)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    opset: Option<i64>,
}

/// The greatest errors of an operator in float32 and in float64, in units of the last place, where they are bounded.
pub(crate) fn greatest_error(domain: &str, name: &str) -> Option<(f64, f64)> {
    let (single, double) = About::new(domain, name).ulp()?.split_once(", ")?;
    Some((single.parse().ok()?, double.parse().ok()?))
}

pub(crate) fn ops(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let all = operators()?;
    let found = match experimental(&all, arguments)? {
        Some(operator) => vec![operator],
        None => select(&all, arguments)?,
    };
    let result = match (found.as_slice(), &arguments.operator) {
        _ if global.json => return json::line(&document::all(&found)).map(|()| 0),
        ([operator], Some(_)) => explain::one(operator),
        (operators, _) => explain::list(operators, arguments.opset.is_some(), global.verbose),
    };
    result.map_err(Failure::stdout)?;
    if arguments.is_all() {
        let names: Vec<&str> = schema::experimental_operators().collect();
        print::note(&format!("experimental operators of old releases run too, below opset 10: {}", names.join(", ")));
    }
    Ok(0)
}

impl Arguments {
    /// Whether they ask for every operator.
    fn is_all(&self) -> bool {
        let Arguments { operator, missing, implemented, domain, opset } = self;
        operator.is_none() && !missing && !implemented && domain.is_none() && opset.is_none()
    }
}

/// The names of all operators, as they can be given.
pub(crate) fn names() -> Vec<String> {
    schema::operators().map(|(domain, name)| about::key(domain, name)).collect()
}

/// An operator with its versions.
struct Operator {
    domain: &'static str,
    name: &'static str,
    /// All versions, oldest first.
    versions: Vec<Version>,
    /// The version to show; `None` if all are wanted.
    at: Option<i64>,
}

struct Version {
    schema: Schema,
    /// The operator is not in the standard from this version on.
    removed: bool,
    runs: bool,
    change: Option<String>,
}

impl Operator {
    fn key(&self) -> String {
        about::key(self.domain, self.name)
    }

    fn about(&self) -> About {
        About::new(self.domain, self.name)
    }

    /// The official page.
    fn link(&self) -> String {
        if schema::history(self.domain, self.name).is_err() {
            return format!("https://github.com/onnx/onnx/blob/v1.4.1/docs/Operators.md#{}", self.name);
        }
        self.about().link().map_or_else(|| about::page(self.domain, self.name), str::to_string)
    }

    /// The versions to list.
    fn listed(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| self.at.is_none_or(|at| version.schema.since_version == at))
    }

    /// The newest listed version that defines the operator.
    fn shown(&self) -> Option<&Version> {
        let defined = self.listed().filter(|version| !version.removed).last();
        defined.or_else(|| self.listed().last())
    }

    /// How many of the listed versions run, and how many there are, without removals.
    fn counts(&self) -> (usize, usize) {
        let defined = self.listed().filter(|version| !version.removed);
        defined.fold((0, 0), |(run, all), version| (run + usize::from(version.runs), all + 1))
    }

    /// The command that shows the operator at work, and the version that it runs: its own command if it is the newest, or
    /// an official case of the newest version up to this one that runs and has one.
    fn example(&self, version: &Version) -> Option<(i64, String)> {
        let newest = self.versions.iter().rev().find(|version| !version.removed);
        let is_newest = newest.is_some_and(|newest| newest.schema.since_version == version.schema.since_version);
        let own = self.about().command().filter(|_| is_newest && version.runs);
        let upto = |v: &&Version| v.schema.since_version <= version.schema.since_version && v.runs;
        let case = |v: &Version| Some((v.schema.since_version, about::case(&v.schema)?));
        let own = own.map(|command| (version.schema.since_version, command.to_string()));
        own.or_else(|| self.listed().filter(upto).filter_map(case).last())
    }
}

/// Every operator.
fn operators() -> Result<Vec<Operator>, Failure> {
    let supported = supported();
    let support: HashMap<(&str, &str), &Support> = supported.iter().map(|s| ((s.domain, s.name), s)).collect();
    let operator = |(domain, name)| {
        let history = schema::history(domain, name).map_err(Failure::run)?;
        let (about, runs) = (About::new(domain, name), support.get(&(domain, name)));
        let before = std::iter::once(None).chain(history.iter().map(Some));
        let version = |(old, schema): (Option<&Schema>, &Schema)| Version {
            // An operator's first version is valid, even if it was deprecated later.
            removed: old.is_some() && schema.deprecated.is_some(),
            runs: runs.is_some_and(|support| support.versions.contains(&schema.since_version)),
            change: old.and_then(|old| about.change(old, schema)),
            schema: schema.clone(),
        };
        Ok(Operator { domain, name, versions: before.zip(&history).map(version).collect(), at: None })
    };
    schema::operators().map(operator).collect()
}

/// The experimental operator that an argument names, if the standard has none of this name.
fn experimental(all: &[Operator], arguments: &Arguments) -> Result<Option<Operator>, Failure> {
    let mut names = schema::experimental_operators().filter(|name| all.iter().all(|own| own.key() != *name));
    let Some(name) = names.find(|name| arguments.operator.as_deref() == Some(name)) else { return Ok(None) };
    let schema = schema::resolve("", name, 1).map_err(Failure::run)?;
    let change = Some("experimental: ONNX dropped it in release 1.5, and it runs below opset 10".to_string());
    let versions = vec![Version { schema, removed: false, runs: true, change }];
    Ok(Some(Operator { domain: "", name, versions, at: None }))
}

/// The operators that the arguments ask for.
fn select<'a>(all: &'a [Operator], arguments: &Arguments) -> Result<Vec<Operator>, Failure> {
    let domain = arguments.domain.as_deref().map(|name| if name == "ai.onnx" { "" } else { name });
    let newest = |domain| schema::newest(domain).ok_or_else(|| unknown_domain(domain, all));
    if let Some(newest) = domain.map(newest).transpose()?.or(schema::newest(""))
        && let Some(opset) = arguments.opset.filter(|opset| *opset > newest)
    {
        let name = domain.filter(|name| !name.is_empty()).unwrap_or("ai.onnx");
        return Err(Failure::usage(format!("--opset {opset}: the newest opset of {name} is {newest}")));
    }
    let exact = |operator: &&'a Operator| {
        let name = arguments.operator.as_deref().unwrap_or("");
        operator.key() == name.strip_prefix("ai.onnx.").filter(|rest| !rest.contains('.')).unwrap_or(name)
            || (domain == Some(operator.domain) && operator.name == name)
    };
    let named: Vec<&Operator> = match &arguments.operator {
        None => all.iter().collect(),
        Some(_) if all.iter().any(|operator| exact(&operator)) => all.iter().filter(exact).collect(),
        Some(part) => {
            let part = part.to_lowercase();
            all.iter().filter(|operator| operator.key().to_lowercase().contains(&part)).collect()
        }
    };
    if let Some(name) = arguments.operator.as_ref().filter(|_| named.is_empty()) {
        return Err(unknown_operator(name, all));
    }
    // An operator's own name also tells its domain.
    let of_domain = |operator: &Operator| match (domain, arguments.opset, named.as_slice()) {
        (Some(domain), ..) => operator.domain == domain,
        (None, Some(_), [_]) | (None, None, _) => true,
        (None, Some(_), _) => operator.domain.is_empty(),
    };
    let mut found = Vec::new();
    for operator in named.iter().filter(|operator| of_domain(operator)) {
        if let Some(operator) = at(operator, arguments.opset) {
            let (run, all) = operator.counts();
            if (!arguments.missing || run < all) && (!arguments.implemented || run > 0) {
                found.push(operator);
            }
        }
    }
    match (found.as_slice(), named.as_slice(), arguments.opset) {
        // Why a named operator isn't there.
        ([], [operator], Some(opset)) => {
            let resolved = schema::resolve(operator.domain, operator.name, opset);
            Err(resolved.map_or_else(|error| Failure::usage(format!("{error:#}")), |_| no_operator()))
        }
        ([], ..) => Err(no_operator()),
        _ => Ok(found),
    }
}

fn no_operator() -> Failure {
    Failure::usage("no operator matches all of the arguments")
}

/// The operator as of an opset; `None` if it isn't in the standard then.
fn at(operator: &Operator, opset: Option<i64>) -> Option<Operator> {
    let Operator { domain, name, .. } = *operator;
    let ruling = |opset| operator.versions.iter().rev().find(|version| version.schema.since_version <= opset);
    let at = match opset {
        Some(opset) => Some(ruling(opset).filter(|version| !version.removed)?.schema.since_version),
        None => None,
    };
    let copy = |v: &Version| Version { schema: v.schema.clone(), change: v.change.clone(), ..*v };
    Some(Operator { domain, name, versions: operator.versions.iter().map(copy).collect(), at })
}

fn unknown_operator(name: &str, all: &[Operator]) -> Failure {
    // Old releases had others, of which nothing is known but their names.
    if let Some(error) = schema::history("", name).err().filter(|error| error.kind() == Kind::Unsupported) {
        return Failure::usage(error.to_string());
    }
    let hint = meant(name, all.iter().map(Operator::key));
    Failure::usage(format!("{} is not an operator of the standard, nor part of a name{hint}", quote(name)))
}

fn unknown_domain(name: &str, all: &[Operator]) -> Failure {
    let mut known: Vec<&str> = all.iter().map(|o| if o.domain.is_empty() { "ai.onnx" } else { o.domain }).collect();
    known.dedup();
    Failure::usage(format!("--domain {}: no such domain; known: {}", print::path(name), known.join(", ")))
}

/// The end of an error that a word is none of some names: those that are most like it.
pub(crate) fn meant(word: &str, names: impl Iterator<Item = String>) -> String {
    let near: Vec<String> = nearest(word, names).iter().map(|name| quote(name)).collect();
    if near.is_empty() { String::new() } else { format!(": did you mean {}?", near.join(", ")) }
}

/// The names that are most like a word, at most three.
fn nearest(word: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let word = word.to_lowercase();
    let last = |name: &str| name.rsplit('.').next().unwrap_or(name).to_lowercase();
    let likeness =
        |name: &str| strsim::jaro_winkler(&word, &last(name)).max(strsim::jaro_winkler(&word, &name.to_lowercase()));
    let mut ranked: Vec<(f64, String)> = names.map(|name| (likeness(&name), name)).filter(|(l, _)| *l > 0.8).collect();
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names() {
        let names = || schema::operators().map(|(domain, name)| about::key(domain, name));
        assert_eq!(nearest("GatherElement", names())[0], "GatherElements");
        assert_eq!(nearest("Gahter", names())[0], "Gather");
        assert_eq!(nearest("Binariser", names())[0], "ai.onnx.ml.Binarizer");
        assert_eq!(nearest("0123456", names()), Vec::<String>::new());
    }
}
