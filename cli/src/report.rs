//! Reports why a model can't be loaded: its faults, and its missing operators.

use crate::failure::{Failure, LOAD, explain};
use crate::print;
use onnxref::{Error, Kind, Missing, Needs, Place, quote};
use onnxref_view::counted;

/// A number with a comma before every three digits.
fn grouped(number: usize) -> String {
    onnxref_view::grouped(number as u64)
}

/// Maximum number of listed faults; missing operators are all listed.
pub(crate) const MAX_FAULTS: usize = 20;

/// Maximum width of the column of operators.
const MAX_LABEL: usize = 48;

/// The faults of the model in a file, then its missing operators.
pub(crate) fn load(path: &str, error: Error) -> Failure {
    let (message, details) = describe(path, &error);
    Failure { details, error: Some(error), ..Failure::new(LOAD, message) }
}

/// What of a model can't be read: other files, or what exceeds a limit.
pub(crate) fn unread(path: &str, causes: &[&Error]) -> Failure {
    let lines = list(causes, causes.len(), MAX_FAULTS);
    match lines.as_slice() {
        [line] => Failure::new(LOAD, format!("{}: {line}", print::path(path))),
        _ => {
            let message = format!("{}: {} can't be read", print::path(path), counted(causes.len(), "part"));
            Failure { details: lines, ..Failure::new(LOAD, message) }
        }
    }
}

/// The message of [`load`], and the lines below it.
pub(crate) fn describe(path: &str, error: &Error) -> (String, Vec<String>) {
    let shown = print::path(path);
    let (faults, missing) = split(error);
    let count = error.fault_count().saturating_sub(error.needs().map_or(0, |needs| needs.missing_operators));
    let mut details = list(&faults, count, MAX_FAULTS);
    details.extend(table(missing));
    let unlisted = error.needs().map_or(0, |needs| needs.missing_operators.saturating_sub(needs.missing.len()));
    details.extend(
        Some(unlisted).filter(|count| *count > 0).map(|count| format!("and {} more operators", grouped(count))),
    );
    let message = match (faults.as_slice(), error.needs()) {
        ([only], None) if count < 2 => {
            details.clear();
            // The error may name the file itself.
            let (text, named) = (text(only), format!("model {}", quote(path)));
            text.strip_prefix(&named).map_or(format!("{shown}: {text}"), |rest| format!("{shown}{rest}"))
        }
        ([], Some(needs)) => format!("{shown} {needs}"),
        (_, Some(needs)) => format!("{shown} has {} and {needs}", faults_text(count)),
        (_, None) => format!("{shown} has {}", faults_text(count)),
    };
    (message, details)
}

fn faults_text(count: usize) -> String {
    if count == 1 { "1 fault".to_string() } else { format!("{} faults", grouped(count)) }
}

/// Splits a model's faults into other faults and missing operators.
pub(crate) fn split(error: &Error) -> (Vec<&Error>, &[Missing]) {
    let missing = error.needs().map_or(&[][..], |needs: &Needs| &needs.missing);
    // Both are in the same order.
    let mut left = missing.iter().peekable();
    let mut is_fault = |cause: &&Error| {
        cause.kind() != Kind::Unsupported || left.next_if(|missing| missing.first == *cause.place()).is_none()
    };
    (error.causes().iter().filter(|cause| is_fault(cause)).collect(), missing)
}

/// A line for each of the first faults; equal faults of several nodes share one. `count` is the number of faults, listed
/// or not.
pub(crate) fn list(faults: &[&Error], count: usize, most: usize) -> Vec<String> {
    let mut groups: Vec<(String, &Error, usize)> = Vec::new();
    for fault in faults {
        let text = after_node(fault);
        match groups.iter_mut().find(|(other, ..)| *other == text) {
            Some((.., nodes)) => *nodes += 1,
            None => groups.push((text, fault, 1)),
        }
    }
    groups.truncate(most);
    let line = |(_, first, nodes): &(String, &Error, usize)| match (nodes, first.place().node_index) {
        (1, _) => text(first),
        (2, Some(_)) => format!("{} (and 1 more node)", text(first)),
        (_, Some(_)) => format!("{} (and {} more nodes)", text(first), grouped(nodes - 1)),
        (_, None) => format!("{} ({} times)", text(first), grouped(*nodes)),
    };
    let listed: usize = groups.iter().map(|(.., nodes)| nodes).sum();
    let more = count.checked_sub(listed).filter(|more| *more > 0).map(|more| format!("and {} more", grouped(more)));
    groups.iter().map(line).chain(more).collect()
}

/// An error's text, with the operator of its node named once.
fn text(error: &Error) -> String {
    let (text, place) = (explain(error), error.place());
    let shorter = || {
        let after = after_node(error);
        let (label, message) = after.strip_prefix(" (")?.split_once("): ")?;
        let version = place.version.map(|version| format!("-{version}"));
        let bare = version.and_then(|version| label.strip_suffix(&version)).unwrap_or(label);
        message.strip_prefix(bare)?.strip_prefix(' ')?;
        Some(text.replacen(&format!(" ({label}): {message}"), &format!(": {message}"), 1))
    };
    shorter().unwrap_or(text.clone())
}

/// A line for each missing operator: the number of nodes that need it, its name, why it can't run, the first node.
fn table(missing: &[Missing]) -> Vec<String> {
    let width = |cell: &dyn Fn(&Missing) -> String| missing.iter().map(|m| cell(m).chars().count()).max().unwrap_or(0);
    let (counts, labels) = (width(&|m| grouped(m.nodes)), width(&Missing::to_string).min(MAX_LABEL));
    let line = |missing: &Missing| {
        let why = why(missing).map(|why| format!("{why}; ")).unwrap_or_default();
        let first = if missing.nodes == 1 { "" } else { "first: " };
        let (nodes, label, node) = (grouped(missing.nodes), missing.to_string(), node(&missing.first));
        format!("{nodes:>counts$}  {label:labels$}  {why}{first}{node}")
    };
    missing.iter().map(line).collect()
}

/// Why an operator can't run, without its name; `None` if it is simply not implemented.
fn why(missing: &Missing) -> Option<&str> {
    let reason = missing.reason.strip_prefix(&format!("{} ", bare(missing))).unwrap_or(&missing.reason);
    Some(reason).filter(|reason| !matches!(*reason, "the operator is not implemented" | "is not implemented"))
}

/// The operator without its version.
fn bare(missing: &Missing) -> String {
    let mut missing = missing.clone();
    missing.version = None;
    missing.to_string()
}

/// A node and the calls around it: `node "x", in node "call" (Function)`.
fn node(place: &Place) -> String {
    let within = place.function.as_ref().map(|function| format!(", in {function}"));
    node_name(place) + &within.unwrap_or_default()
}

fn node_name(place: &Place) -> String {
    let name = place.node.as_deref();
    name.map_or_else(|| format!("node #{}", place.node_index.unwrap_or(0)), |name| format!("node {}", quote(name)))
}

/// An error's text after the name of its node: ` (Gather-13): indices ..`.
fn after_node(error: &Error) -> String {
    let (text, place) = (format!("{error:#}"), error.place());
    let within = place.function.as_ref().map(|function| format!("in {function}: ")).unwrap_or_default();
    text.strip_prefix(&(within + &node_name(place))).map_or(text.clone(), str::to_string)
}

/// The reasons why a model can't run, each once.
pub(crate) fn reasons(error: &Error) -> Vec<String> {
    let (faults, missing) = split(error);
    let missing = missing.iter().map(|missing| match why(missing) {
        None => format!("{missing} is not implemented"),
        Some(_) if missing.reason.starts_with(&format!("{} ", bare(missing))) => missing.reason.clone(),
        Some(why) => format!("{missing}: {why}"),
    });
    let message = |fault: &&Error| {
        let text = after_node(fault);
        let message = fault.place().node_index.and_then(|_| text.split_once(": "));
        message.map_or(text.clone(), |(_, message)| message.to_string())
    };
    let mut reasons: Vec<String> = faults.iter().map(message).chain(missing).collect();
    reasons.sort();
    reasons.dedup();
    reasons
}
