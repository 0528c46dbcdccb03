//! `onnxref generate`: test cases from the table of the standard.

mod attributes;
mod bounds;
mod elements;
mod faults;
mod goals;
mod lists;
mod maker;
mod negatives;
mod shapes;
mod source;
mod steps;
mod sums;
mod texts;

use crate::corpus::folder::NewFolder;
use crate::corpus::manifest::{About, Corpus, Details, OperatorVersion, Refusal};
use crate::corpus::{operators, report};
use crate::failure::{Failure, NOTHING};
use crate::ops::meant;
use crate::options::Completed;
use crate::progress::Progress;
use crate::repeat::RANDOM;
use crate::test::order;
use crate::{Global, print};
use clap::Args;
use goals::{Goal, goals, type_key};
use maker::{Made, Maker};
use onnxref::bytes::Bytes;
use onnxref::conformance::{Case, Outcome};
use onnxref::schema::{self, Schema};
use onnxref::{Cancel, Value, quote, supported};
use source::Source;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Generate test cases for operators from the table of the standard
#[derive(Debug, Args)]
#[command(after_help = "\
Of each operator version there are cases for each type of each type variable, open (symbolic)
shapes, constant inputs, only what is required, all that is optional, edge values (NaN,
infinities, -0, subnormal numbers, the ends of integers), an input without elements, and a
scalar. Operators with subgraphs have cases for what their bodies do instead. A case is a folder
in ONNX's layout; its expected outputs are onnxref's. Values follow from the seed: the files are
the same on every machine. What draws random numbers is left out.

DIR/manifest.json lists the cases, as for `onnxref corpus export`, with `ulp`: how far the
expected outputs are from the exact result of the formula, at most, in units of the last place.
0: every engine must give the same bits. 0.5: rounded once. null: no bound is known. Sums,
products of lanes and formulas of several steps have `absolute`: how far each element of the
outputs may be from the expected one, at most, one output after the other, if an engine adds
terms in another order and rounds each step as the coarsest type of the node, or less, with
functions such as exp within 4 ulp; null: a step may overflow.

Examples:
  onnxref generate -o cases --operator Gather --opset 28
  onnxref test cases")]
pub(crate) struct Arguments {
    /// The folder to write; it must be new or empty
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// The seed of all choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Only this operator, such as Gather or ai.onnx.ml.Scaler; may be given several times
    #[arg(long, value_name = "NAME", value_parser = Completed(crate::ops::names), hide_possible_values = true)]
    operator: Vec<String>,

    /// Only the versions that apply at opset N of ai.onnx, and the newest ones of other domains
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    opset: Option<i64>,

    /// At most N cases of each version
    #[arg(long, value_name = "N")]
    per_version: Option<NonZeroUsize>,
}

/// A case to be written.
struct Written {
    name: String,
    about: About,
    files: Vec<(String, Bytes)>,
}

pub(crate) fn generate(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let versions = versions(arguments)?;
    let (cancel, progress) = (Cancel::new(), Progress::new());
    let mut corpus = Corpus::new(NewFolder::new("-o", &arguments.output, &cancel)?);
    progress.expect(versions.len());
    let (mut count, mut none) = (0, Vec::new());
    let work = |(schema, opset): &(Schema, i64)| (label(schema), cases(schema, *opset, arguments));
    let jobs = std::thread::available_parallelism().map_or(1, |count| count.get());
    order::in_order(&versions, jobs, work, |(label, cases): (String, Vec<Written>)| {
        progress.step();
        if cases.is_empty() {
            none.push(label);
        }
        count += cases.len();
        cases.into_iter().try_for_each(|case| corpus.add(&case.name, case.about, &case.files))
    })?;
    drop(progress);
    if arguments.operator.is_empty() {
        for (refusal, files) in faults::all(arguments.opset.unwrap_or(newest())) {
            let name = format!("negative/model/{}", refusal.rule);
            if let Some(case) = negative(&name, Vec::new(), refusal, files) {
                corpus.add(&case.name, case.about, &case.files)?;
            }
        }
    }
    if !none.is_empty() {
        print::note(&format!("without a case: {}", none.join(", ")));
    }
    if count == 0 {
        return Err(Failure::new(NOTHING, "there are no cases"));
    }
    report(&corpus.finish()?, global)
}

/// The newest opset of ai.onnx.
fn newest() -> i64 {
    schema::newest("").unwrap_or(1)
}

/// The operator versions to make cases of, each with the opset that a model imports.
fn versions(arguments: &Arguments) -> Result<Vec<(Schema, i64)>, Failure> {
    let failed = |error: onnxref::Error| Failure::usage(format!("{error:#}"));
    let newest = newest();
    if let Some(opset) = arguments.opset.filter(|opset| *opset > newest) {
        return Err(Failure::usage(format!("--opset {opset}: the newest opset is {newest}")));
    }
    let standard = schema::operators().filter(|(domain, _)| *domain != "org.openvinotoolkit");
    let experimental = schema::experimental_operators().map(|name| ("", name));
    let known: BTreeSet<(&str, &str)> = standard.chain(experimental).collect();
    let key = |domain: &str, name: &str| if domain.is_empty() { name.to_string() } else { format!("{domain}.{name}") };
    let is_known = |given: &&String| known.iter().any(|(domain, name)| key(domain, name) == **given);
    if let Some(given) = arguments.operator.iter().find(|given| !is_known(given)) {
        let near = meant(given, known.iter().map(|(domain, name)| key(domain, name)));
        let given = quote(given);
        return Err(Failure::usage(format!("--operator {given}: it is not an operator of the standard{near}")));
    }
    let runs = supported();
    let mut versions = Vec::new();
    for (domain, name) in known {
        if !arguments.operator.is_empty() && !arguments.operator.contains(&key(domain, name)) {
            continue;
        }
        let opset =
            arguments.opset.map(|opset| if domain.is_empty() { opset } else { schema::newest(domain).unwrap_or(1) });
        let applies = |schema: &Schema, opset| schema::resolve(domain, name, opset).is_ok_and(|other| other == *schema);
        let mut history = Vec::new();
        if let Some(support) = runs.iter().find(|support| support.domain == domain && support.name == name) {
            history = schema::history(domain, name).map_err(failed)?;
            history.retain(|schema| support.versions.contains(&schema.since_version));
        }
        if domain.is_empty() && schema::experimental_operators().any(|experimental| experimental == name) {
            history.insert(0, schema::resolve(domain, name, 1).map_err(failed)?);
        }
        for schema in history {
            if schema.deprecated.is_none()
                && !RANDOM.contains(&name)
                && opset.is_none_or(|opset| applies(&schema, opset))
            {
                let opset = opset.unwrap_or(schema.since_version);
                versions.push((schema, opset));
            }
        }
    }
    Ok(versions)
}

/// The operator version as folders have it: `Gather-13`.
fn label(schema: &Schema) -> String {
    let Schema { domain, name, since_version, .. } = schema;
    if domain.is_empty() { format!("{name}-{since_version}") } else { format!("{domain}.{name}-{since_version}") }
}

/// Maximum number of attempts for a goal.
const ATTEMPTS: usize = 400;

/// Maximum number of attempts for a case as text: little of it is drawn.
const TEXT_ATTEMPTS: usize = 64;

/// The cases of an operator version.
fn cases(schema: &Schema, opset: i64, arguments: &Arguments) -> Vec<Written> {
    let label = label(schema);
    let (mut cases, mut negatives) = (Vec::new(), Vec::new());
    let most = arguments.per_version.map_or(usize::MAX, NonZeroUsize::get);
    let mut add = |case: Written, made: &Made, outputs: &[(String, Value)]| {
        if cases.is_empty() {
            negatives = refused(schema, &label, made, outputs);
        }
        cases.push(case);
        cases.len() < most
    };
    let texts = texts::of(schema, &label);
    let mut named = BTreeSet::new();
    for text in &texts {
        if named.contains(&text.name) {
            continue;
        }
        let mut seeds = Source::named(arguments.seed, &format!("{label} {}", text.name));
        let made = (0..TEXT_ATTEMPTS).find_map(|_| {
            let made = text.make(&mut Source::new(seeds.word()), schema, opset).ok()?;
            let (case, outputs) = case(schema, &label, &text.name, text.about, None, &made)?;
            Some((case, made, outputs))
        });
        let Some((case, made, outputs)) = made else { continue };
        named.insert(&text.name);
        if !add(case, &made, &outputs) {
            break;
        }
    }
    // What worked for one goal often does for the next.
    let mut good = None;
    for goal in goals(schema).into_iter().filter(|_| texts.is_empty()) {
        let name = goal.name();
        let mut seeds = Source::named(arguments.seed, &format!("{label} {name}"));
        let first = seeds.word();
        let tries = [Some(first), good].into_iter().flatten().chain((0..ATTEMPTS).map(|_| seeds.word()));
        let made = tries.into_iter().find_map(|seed| {
            let made = Maker::new(&mut Source::new(seed), schema, &goal).make(opset).ok()?;
            let (case, outputs) = case(schema, &label, &name, &name, Some(&goal), &made)?;
            Some((seed, case, made, outputs))
        });
        if let Some((seed, case, made, outputs)) = made {
            good = Some(seed);
            if !add(case, &made, &outputs) {
                break;
            }
        }
    }
    cases.append(&mut negatives);
    cases
}

/// The outputs of a node, by name.
type Named = Vec<(String, Value)>;

/// Cases that must be refused, of a node that runs.
fn refused(schema: &Schema, label: &str, made: &Made, outputs: &[(String, Value)]) -> Vec<Written> {
    let mut cases = Vec::new();
    for (rule, part, broken) in negatives::broken(schema, made) {
        let Ok(mut files) = broken.files(Some(outputs)) else { continue };
        files.retain(|(path, _)| !path.contains("/output_"));
        let Some((_, model)) = files.first() else { continue };
        let Some(refusal) = negatives::refusal(rule, model, broken.feeds()) else { continue };
        if refusal.text.contains(part) {
            cases.extend(negative(&format!("negative/{label}/{rule}"), vec![operator(schema)], refusal, files));
        }
    }
    cases
}

/// A case that must be refused.
fn negative(
    name: &str,
    operators: Vec<OperatorVersion>,
    refusal: Refusal,
    mut files: Vec<(String, Bytes)>,
) -> Option<Written> {
    let mut text = serde_json::to_string_pretty(&refusal).ok()?;
    text.push('\n');
    files.push(("test_data_set_0/expected_error.json".to_string(), text.into_bytes().into()));
    let about = format!("{}: {}", refusal.rule, refusal.text);
    let details = Details { refusal: Some(refusal), ..Details::default() };
    Some(Written { name: name.to_string(), about: About { about, operators, details }, files })
}

fn operator(schema: &Schema) -> OperatorVersion {
    let (domain, name) = (schema.domain.clone(), schema.name.clone());
    OperatorVersion { domain, name, version: Some(schema.since_version) }
}

/// The case of a node, if it runs and is what the goal asks for.
fn case(
    schema: &Schema,
    label: &str,
    name: &str,
    words: &str,
    goal: Option<&Goal>,
    made: &Made,
) -> Option<(Written, Named)> {
    let outputs = made.run().ok()?;
    if !goal.is_none_or(|goal| shows(schema, goal, made, &outputs)) {
        return None;
    }
    let files = made.files(Some(&outputs)).ok()?;
    // With declared outputs it must run too. A NaN may have another sign than in the file.
    let placed = files.iter().map(|(path, bytes)| (format!("case/{path}"), bytes.clone()));
    let passed = |case: &Case| matches!(case.run_with(&maker::options()), Outcome::Passed { ulps: 0, .. });
    if !Case::from_files(placed).first().is_some_and(passed) {
        return None;
    }
    let ulp = made.exact.map_or_else(|| bounds::ulp(schema, made, &outputs), |exact| exact.then_some(0.0));
    let absolute = if ulp == Some(0.0) { None } else { bounds::absolute(schema, made, &outputs) };
    let details = Details { ulp: Some(ulp), absolute, ..Details::default() };
    let operators = operators(&files, &maker::options());
    let about = About { about: format!("{words}: {}", made.text()), operators, details };
    Some((Written { name: format!("{label}/{name}"), about, files }, outputs))
}

/// Whether an input or an output is of the type that the goal asks for.
fn shows(schema: &Schema, goal: &Goal, made: &Made, outputs: &[(String, Value)]) -> bool {
    let Goal::Type(key, wanted) = goal else { return true };
    let value = |name: &String| made.inputs.iter().find(|given| given.name == *name).map(|given| &given.value);
    let inputs = schema.inputs.iter().zip(made.node.input.iter().map(value));
    let outputs = schema.outputs.iter().zip(outputs.iter().map(|(_, value)| Some(value)));
    let is_wanted = |value: &Value| value.value_type().as_ref() == Some(wanted);
    inputs.chain(outputs).any(|(formal, value)| type_key(formal) == key && value.is_some_and(is_wanted))
}
