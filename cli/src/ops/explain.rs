//! Operators as text: a table of many, or all about one.

use super::{Operator, Version, types};
use crate::print::{self, Stdout};
use onnxref::schema::{Arity, AttributeSchema, Parameter};
use onnxref_view::{counted, differences};
use std::io::{self, Write};

/// Maximum width of a cell of prose.
const MAX_WIDTH: usize = 84;

/// A row for each operator; `-v` adds its sentence.
pub(super) fn list(operators: &[Operator], at_opset: bool, verbose: bool) -> io::Result<()> {
    let versions = if at_opset { "version" } else { "versions" };
    let row = |operator: &Operator| {
        let versions: Vec<String> = operator.listed().filter(|v| !v.removed).map(number).collect();
        let removed = operator.listed().filter(|v| v.removed).map(|v| format!(" (removed in {})", number(v)));
        [operator.key(), versions.join(", ") + &removed.collect::<String>(), runs(operator), types(operator)]
    };
    if verbose {
        let rows = operators.iter().map(|operator| {
            let [key, versions, runs, types] = row(operator);
            [key, versions, runs, types, operator.about().sentence().unwrap_or("").to_string()]
        });
        print::table(["operator", versions, "runs", "types", "what it does"], &[3], rows)?;
    } else {
        print::table(["operator", versions, "runs", "types"], &[3], operators.iter().map(row))?;
    }
    let count = |of: &str| operators.iter().filter(|operator| runs(operator).starts_with(of)).count();
    let (all, some, none) = (count("all") + count("yes"), count("some"), count("no"));
    let some = if some == 0 { String::new() } else { format!("{some} in some versions, ") };
    print::note(&format!("{}: {all} run here, {some}{none} don't", counted(operators.len(), "operator")));
    Ok(())
}

fn number(version: &Version) -> String {
    version.schema.since_version.to_string()
}

/// Which of the listed versions run.
fn runs(operator: &Operator) -> String {
    match operator.counts() {
        (1, 1) => "yes".to_string(),
        (0, _) => "no".to_string(),
        (run, all) if run == all => "all".to_string(),
        _ => {
            let run: Vec<String> = operator.listed().filter(|version| version.runs).map(number).collect();
            format!("some: {}", run.join(", "))
        }
    }
}

/// The number of types of the first input, or of the first output if there is no input.
fn types(operator: &Operator) -> String {
    let schema = operator.shown().map(|version| &version.schema);
    let first = schema.and_then(|schema| schema.inputs.first().or(schema.outputs.first()));
    first.map(|parameter| parameter.types.iter().count().to_string()).unwrap_or_default()
}

/// What the operator is, its versions, the signature of one, an example.
pub(super) fn one(operator: &Operator) -> io::Result<()> {
    writeln!(Stdout, "{}", operator.key())?;
    if let Some(sentence) = operator.about().sentence() {
        writeln!(Stdout, "{sentence}")?;
    }
    writeln!(Stdout, "{}\n", operator.link())?;
    print::table(["version", "runs here", "what it changed"], &[0], operator.versions.iter().map(version_row))?;
    let Some(version) = operator.shown() else { return Ok(()) };
    signature(operator, version)?;
    let shown = version.schema.since_version;
    if !version.runs {
        writeln!(Stdout, "\n{}-{shown} doesn't run here.", operator.key())?;
    }
    differences(operator.name)?;
    match operator.example(version) {
        Some((of, command)) => {
            let of = if of == shown { String::new() } else { format!(" of version {of}") };
            writeln!(Stdout, "\nExample{of}, from the root of the repository:\n  {command}")
        }
        None if version.runs => writeln!(Stdout, "\nNo official case has this version alone."),
        None => Ok(()),
    }
}

/// Where engines differ.
fn differences(name: &str) -> io::Result<()> {
    let rows = differences::of(name);
    for (k, row) in rows.iter().enumerate() {
        let head =
            if k == 0 { "\nWhere engines differ from the text, or from each other where it is silent:\n" } else { "" };
        let indented = |text: String| text.replace('\n', "\n      ");
        writeln!(Stdout, "{head}  {}", indented(wrap(&format!("versions {}: {}", row.versions, row.text))))?;
        let engines = [("onnxruntime", row.onnxruntime), ("reference", row.reference), ("onnxref", row.onnxref)];
        for (engine, what) in engines.iter().filter(|(_, what)| !what.is_empty()) {
            writeln!(Stdout, "    {}", indented(wrap(&format!("{engine}: {what}"))))?;
        }
        writeln!(Stdout, "    {}", indented(wrap(&format!("models: {}", row.models.join(", ")))))?;
    }
    if !rows.is_empty() {
        writeln!(Stdout, "  The models are in onnx-test-data/differences.tar.xz.")?;
    }
    Ok(())
}

fn version_row(version: &Version) -> [String; 3] {
    let runs = if version.removed {
        ""
    } else if version.runs {
        "yes"
    } else {
        "no"
    };
    [number(version), runs.to_string(), wrap(version.change.as_deref().unwrap_or("first version"))]
}

fn signature(operator: &Operator, version: &Version) -> io::Result<()> {
    let schema = &version.schema;
    writeln!(Stdout, "\n{}-{}", operator.key(), schema.since_version)?;
    let side = |what: &'static str, list: &[Parameter]| -> Vec<[String; 4]> {
        let row = |p: &Parameter| [what.to_string(), p.name.clone(), values(p.arity), wrap(&types_of(p))];
        list.iter().map(row).collect()
    };
    let mut rows = side("input", &schema.inputs);
    rows.extend(side("output", &schema.outputs));
    // Types are told where a variable occurs first.
    let mut seen: Vec<&str> = Vec::new();
    for (row, parameter) in rows.iter_mut().zip(schema.inputs.iter().chain(&schema.outputs)) {
        let Some(variable) = parameter.variable.as_deref() else { continue };
        if seen.contains(&variable) {
            row[3] = variable.to_string();
        }
        seen.push(variable);
    }
    print::table(["", "name", "values", "types"], &[], rows)?;
    if schema.attributes.is_empty() {
        return writeln!(Stdout, "\nIt has no attributes.");
    }
    writeln!(Stdout)?;
    let row = |a: &AttributeSchema| ["attribute".to_string(), a.name.clone(), a.kind.name().to_string(), default(a)];
    print::table(["", "name", "kind", "default"], &[], schema.attributes.iter().map(row))
}

fn values(arity: Arity) -> String {
    match arity {
        Arity::One => "one".to_string(),
        Arity::Optional => "optional".to_string(),
        Arity::Variadic(min) => format!("{min} or more"),
        _ => "?".to_string(),
    }
}

/// `T: int32/64`, or the types alone if values may differ in type.
fn types_of(parameter: &Parameter) -> String {
    let types = types::of_set(&parameter.types);
    match (&parameter.variable, parameter.arity) {
        (Some(variable), _) => format!("{variable}: {types}"),
        (None, Arity::Variadic(_)) => format!("each its own: {types}"),
        (None, _) => types,
    }
}

fn default(attribute: &AttributeSchema) -> String {
    match &attribute.default {
        Some(value) => wrap(&types::value(value).to_string()),
        None if attribute.required => "required".to_string(),
        None => String::new(),
    }
}

/// Breaks a text into lines at spaces.
fn wrap(text: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > MAX_WIDTH {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_have_several_lines() {
        let text = "word ".repeat(40);
        let wrapped = wrap(text.trim_end());
        assert!(wrapped.lines().count() == 3 && wrapped.lines().all(|line| line.len() <= MAX_WIDTH), "{wrapped}");
        assert_eq!(wrapped.replace('\n', " "), text.trim_end());
        assert_eq!(wrap("short"), "short");
    }
}
