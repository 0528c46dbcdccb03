//! SECURITY.md says what is in the code: limits, tests, unsafe code.

use onnxref::Limits;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cells of the table whose head starts with a column.
fn rows(document: &str, column: &str) -> Vec<Vec<String>> {
    let (_, table) = document.split_once(&format!("\n| {column} |")).unwrap_or_else(|| panic!("no table of {column}"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect()).collect()
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// A number as the document writes it: `8 GiB`, `2^40`, `10 million`, `100,000`.
fn number(text: &str) -> u64 {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("million", 1_000_000)];
    let (text, unit) = text.split_once(' ').map_or((text, 1), |(text, unit)| {
        (text, units.iter().find(|(name, _)| *name == unit).unwrap_or_else(|| panic!("no unit: {unit}")).1)
    });
    match text.strip_prefix("2^") {
        Some(power) => 1 << power.parse::<u32>().unwrap(),
        None => text.replace(',', "").parse::<u64>().unwrap() * unit,
    }
}

/// A limit by its name.
fn value(limits: &Limits, name: &str) -> u64 {
    let text = format!("{limits:?}");
    let (_, rest) = text.split_once(&format!(" {name}: ")).unwrap_or_else(|| panic!("{text} has no {name}"));
    rest.split([',', ' ']).next().unwrap().parse().unwrap()
}

#[test]
fn limits() {
    let rows = rows(&read("SECURITY.md"), "limit");
    let names: Vec<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    assert_eq!(names, Limits::NAMES);
    for row in &rows {
        let name = row[0].trim_matches('`');
        let has = [value(&Limits::default(), name), value(&Limits::untrusted(), name)];
        assert_eq!([number(&row[2]), number(&row[3])], has, "{name}");
    }
    // The documentation of the preset has the same numbers.
    let source = read("src/limits.rs");
    let (_, documentation) = source.split_once("/// | limit | value | why |").unwrap();
    let lines = documentation.lines().skip(2).map_while(|line| line.trim().strip_prefix("/// |"));
    let given: Vec<(&str, u64)> = lines
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[0].trim_matches('`'), number(cells[1]))
        })
        .collect();
    let has: Vec<(&str, u64)> = Limits::NAMES.iter().map(|name| (*name, value(&Limits::untrusted(), name))).collect();
    assert_eq!(given, has);
    // No limit of the preset is above the default.
    assert!(has.iter().all(|(name, own)| *own <= value(&Limits::default(), name)));
}

/// Where the tests of a suite are.
fn suite(name: &str) -> Option<PathBuf> {
    match name {
        "lib" => Some("src".into()),
        "kernels" => Some("kernels/src".into()),
        _ => Some(Path::new("tests").join(name))
            .filter(|folder| folder.is_dir() || folder.with_extension("rs").is_file()),
    }
}

/// Whether `suite::module::test` is there: a suite, a module of it, or a test.
fn is_there(name: &str) -> bool {
    let mut parts = name.split("::");
    let Some(mut folder) = parts.next().and_then(suite) else { return false };
    let main = [folder.join("main.rs"), folder.join("lib.rs"), folder.with_extension("rs")];
    let mut file = main.into_iter().find(|file| file.is_file());
    for part in parts {
        let next = folder.join(part);
        let module = [next.with_extension("rs"), next.join("mod.rs")].into_iter().find(|file| file.is_file());
        match (module, &file) {
            (Some(module), _) => (folder, file) = (next, Some(module)),
            (None, Some(file)) => {
                let text = read(file);
                let test = text
                    .split_once(&format!("fn {part}()"))
                    .is_some_and(|(before, _)| before.lines().rev().take(5).any(|line| line.trim() == "#[test]"));
                if !test && !text.contains(&format!("mod {part} {{")) {
                    return false;
                }
            }
            _ => return false,
        }
    }
    file.is_some()
}

#[test]
fn tests_that_are_named_exist() {
    let document = read("SECURITY.md");
    let rows = rows(&document, "#");
    assert_eq!(rows.len(), 14);
    let mut seen = 0;
    for row in &rows {
        let names: Vec<&str> = quoted(&row[2]).collect();
        assert!(!names.is_empty(), "promise {} names no test", row[0]);
        for name in names {
            assert!(is_there(name), "promise {} names {name}, which is not there", row[0]);
            seen += 1;
        }
    }
    assert!(seen > 35, "only {seen} names");
    // Other names of tests in the text.
    for name in quoted(&document).filter(|name| name.starts_with("hostile::") || name.starts_with("rules::")) {
        assert!(is_there(name), "{name} is not there");
    }
    for (name, there) in [
        ("hostile", true),
        ("oracle", true),
        ("hostile::billing", true),
        ("hostile::billing::nothing_takes_forever", true),
        ("hostile::billing::nothing", false),
        ("hostile::operators::each_is_refused", true),
        ("hostile::case::check", false),
        ("kernels::gather::tests", true),
        ("hostiles", false),
    ] {
        assert_eq!(is_there(name), there, "{name}");
    }
}

/// The sources below a folder, with their code: no comments, and nothing after the tests begin.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = read(&path);
                let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
                found.push((path.to_string_lossy().replace('\\', "/"), code.join("\n")));
            }
        }
    }
    found
}

/// `UPDATE=1 cargo test --test rules security` writes the numbers; a new file needs a row, with its reason, by hand.
#[test]
fn unsafe_code() {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let count = |code: &str| code.split(|c| !is_part(c)).filter(|word| *word == "unsafe").count();
    let folders = ["src", "kernels/src", "capi/src", "cli/src", "view/src", "web/src", "python/src"];
    let all = folders.into_iter().flat_map(sources).map(|(path, code)| (path, count(&code)));
    let has: BTreeMap<String, usize> = all.filter(|(_, count)| *count > 0).collect();
    let mut document = read("SECURITY.md");
    if std::env::var_os("UPDATE").is_some() {
        for row in rows(&document, "file") {
            let [file, old, why] = [&row[0], &row[1], &row[2]];
            let new = has.get(file.trim_matches('`')).copied().unwrap_or(0);
            document = document.replace(&format!("| {file} | {old} | {why} |"), &format!("| {file} | {new} | {why} |"));
        }
        std::fs::write("SECURITY.md", &document).unwrap();
    }
    let rows = rows(&document, "file");
    let given: BTreeMap<String, usize> =
        rows.iter().map(|row| (row[0].trim_matches('`').to_string(), row[1].parse().unwrap())).collect();
    assert_eq!(given, has, "SECURITY.md, and the code");
    assert!(rows.iter().all(|row| !row[2].is_empty()), "a use of unsafe code has no reason");
}

/// There is no code in the library that starts a program, opens a connection, loads a library or writes a file; but for
/// `Document::save`.
#[test]
fn the_library_runs_and_writes_nothing() {
    let mut wrong = Vec::new();
    for (path, code) in ["src", "kernels/src"].into_iter().flat_map(sources) {
        let code = code.split("mod tests {").next().unwrap().to_string();
        if path.ends_with("tests.rs") || path.ends_with("testing.rs") {
            continue;
        }
        for word in
            ["process::Command", "std::net", "libloading", "File::create", "fs::write", "OpenOptions", "remove_"]
        {
            let saves = path == "src/document/save.rs" && matches!(word, "File::create" | "remove_");
            if code.contains(word) && !saves {
                wrong.push(format!("{path} has {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
