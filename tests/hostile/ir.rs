//! OpenVINO networks that mean harm: the text, the edges, and the file of constants.

use crate::billing::{check as check_costs, cost_by};
use crate::case::{At, Case, check, on_thread, report};
use crate::names::dangerous;
use onnxref::{Kind, Limits, Model};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A network of these layers and edges.
fn net(layers: &str, edges: &str) -> Vec<u8> {
    format!("<net name=\"n\" version=\"11\"><layers>{layers}</layers><edges>{edges}</edges></net>").into_bytes()
}

fn layer(id: u64, kind: &str, data: &str, inputs: usize, outputs: usize) -> String {
    let ports = |what: &str, first: usize, count: usize| {
        let ports: String = (first..first + count).map(|port| format!("<port id=\"{port}\"/>")).collect();
        if count == 0 { String::new() } else { format!("<{what}>{ports}</{what}>") }
    };
    let (input, output) = (ports("input", 0, inputs), ports("output", inputs, outputs));
    format!(
        "<layer id=\"{id}\" name=\"l{id}\" type=\"{kind}\" version=\"opset8\"><data {data}/>{input}{output}</layer>"
    )
}

fn edge(from: (u64, u64), to: (u64, u64)) -> String {
    format!("<edge from-layer=\"{}\" from-port=\"{}\" to-layer=\"{}\" to-port=\"{}\"/>", from.0, from.1, to.0, to.1)
}

fn parameter(id: u64) -> String {
    layer(id, "Parameter", "element_type=\"f32\" shape=\"2\"", 0, 1)
}

fn constant(id: u64, dtype: &str, shape: &str, offset: &str, size: &str) -> String {
    let data = format!("element_type=\"{dtype}\" shape=\"{shape}\" offset=\"{offset}\" size=\"{size}\"");
    layer(id, "Const", &data, 0, 1)
}

#[test]
fn texts() {
    let mut cases = Vec::new();
    let mut case = |name: &str, bytes: &[u8], kind: Kind| {
        let case = Case::new("ir", name, bytes.to_vec(), kind, "");
        cases.push(case.limits(|limits| limits.load_bytes_per_byte = 4));
    };
    for text in [
        "<",
        "<>",
        "< >",
        "</net>",
        "<!",
        "<!-- ",
        "<![CDATA[",
        "<?xml",
        "<?xml version=\"1.0\"?>",
        "<html></html>",
        "<net>",
        "<net version=\"11\">",
        "<net version=\"11\"></layers></net>",
        "<net version=\"11\"/><net version=\"11\"/>",
        "<net version=\"11\"/>text",
        "<net version=11/>",
        "<net version=\"11\" version=\"11\"/>",
        "<net version=\"&unknown;\"/>",
        "<net version=\"&#0;\"/>",
        "<net version=\"&#x110000;\"/>",
        "<net version=\"-1\"/>",
        "<net version=\"18446744073709551616\"/>",
        "<net name=\"n\" version=\"11\"><layers><layer id=\"0\"",
    ] {
        case(text, text.as_bytes(), Kind::Model);
    }
    case("not UTF-8", b"<net version=\"11\" name=\"\xff\"/>", Kind::Model);
    case("NUL", b"<net version=\"11\"/>\0", Kind::Model);
    case("version 10^9", b"<net version=\"1000000000\"/>", Kind::Unsupported);
    let laughs = "<!DOCTYPE l [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;\"><!ENTITY c SYSTEM \"/etc/passwd\">]>\
                  <net name=\"&b;&c;\" version=\"11\"/>";
    case("entities", laughs.as_bytes(), Kind::Model);
    let whole = net(&(parameter(0) + &layer(1, "Result", "", 1, 0)), &edge((0, 0), (1, 0)));
    Model::from_bytes(whole.clone()).unwrap();
    for len in 1..whole.len() {
        case(&format!("the first {len} bytes"), &whole[..len], Kind::Model);
    }
    for (name, depth) in [("101 deep", 101), ("100,000 deep", 100_000)] {
        let deep = [b"<net version=\"11\">".to_vec(), b"<a>".repeat(depth), b"</a>".repeat(depth), b"</net>".to_vec()];
        case(name, &deep.concat(), Kind::Limit);
        case(&format!("{name}, not closed"), &deep[..2].concat(), Kind::Limit);
    }
    let long = |len: usize| net(&format!("<layer id=\"0\" name=\"{}\"/>", "n".repeat(len)), "");
    case("a long name", &long((64 << 10) + 1), Kind::Limit);
    case("layers", &net(&"<layer id=\"0\"/>".repeat(200_000), ""), Kind::Limit);
    case("edges", &net("", &edge((0, 0), (0, 0)).repeat(350_000)), Kind::Limit);
    let ports = "<port id=\"0\"/>".to_string();
    case("a port twice", &net(&format!("<layer id=\"0\"><input>{ports}{ports}</input></layer>"), ""), Kind::Model);
    let data: String = (0..101).map(|k| format!(" a{k}=\"\"")).collect();
    case("101 attributes", &net(&format!("<layer id=\"0\"><data{data}/></layer>"), ""), Kind::Model);
    let nodes = |n: u64| (0..n).map(|id| format!("<layer id=\"{id}\"/>")).collect::<String>();
    let many = Case::new("ir", "3 layers", net(&nodes(3), ""), Kind::Limit, "Limits::nodes").at([At::Limit("nodes")]);
    cases.push(many.limits(|limits| limits.nodes = 2));
    check(cases);
    report("ir");
}

#[test]
fn edges() {
    let (from, to) = (parameter(0), layer(1, "Result", "", 1, 0));
    let two = format!("{from}{to}");
    let mut cases = Vec::new();
    for (name, layers, edges) in [
        ("no edge", two.clone(), String::new()),
        ("an edge twice", two.clone(), edge((0, 0), (1, 0)).repeat(2)),
        ("an edge from nowhere", two.clone(), edge((9, 0), (1, 0))),
        ("an edge from no port", two.clone(), edge((0, 9), (1, 0))),
        ("an edge to nowhere", two.clone(), edge((0, 0), (9, 0))),
        ("an edge to no port", two.clone(), edge((0, 0), (1, 9))),
        ("an edge from a last layer", two.clone(), edge((u64::MAX, u64::MAX), (1, 0))),
        ("an id twice", format!("{from}{from}"), String::new()),
        ("a loop", layer(0, "Gather", "", 3, 1), edge((0, 3), (0, 0))),
        (
            "a circle",
            layer(0, "Gather", "", 3, 1) + &layer(1, "Gather", "", 3, 1),
            edge((0, 3), (1, 0)) + &edge((1, 3), (0, 0)),
        ),
        ("a result of two", from.clone() + &layer(1, "Result", "", 2, 0), edge((0, 0), (1, 0)) + &edge((0, 0), (1, 1))),
        (
            "a parameter that gives nothing",
            layer(0, "Parameter", "element_type=\"f32\" shape=\"2\"", 0, 0),
            String::new(),
        ),
        ("a gather of nothing", layer(0, "Gather", "", 0, 1), String::new()),
    ] {
        cases.push(Case::new("ir", name, net(&layers, &edges), Kind::Model, ""));
    }
    check(cases);
    report("ir");
}

#[test]
fn names_in_networks() {
    let mut cases = Vec::new();
    for (what, bad) in dangerous() {
        let escaped: String = bad
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t'))
            .map(|c| if "\"&<\n\r\t".contains(c) { format!("&#{};", c as u32) } else { c.to_string() })
            .collect();
        let named = |kind: &str, version: &str| {
            format!("<layer id=\"0\" name=\"{escaped}\" type=\"{kind}\" version=\"{version}\"><data {{}}/></layer>")
        };
        let layers = [
            named("Parameter", "opset1").replace("{}", "element_type=\"f32\" shape=\"2\""),
            named("Const", "opset1").replace("{}", &format!("element_type=\"{escaped}\"")),
            named(&escaped, "opset8").replace("{}", ""),
            named("Gather", &escaped).replace("{}", ""),
            named("Gather", "opset8").replace("{}", &format!("batch_dims=\"{escaped}\"")),
            named("Gather", "opset8").replace("{}", "").repeat(2),
        ];
        for (k, layer) in layers.iter().enumerate() {
            // Of which kind it is depends on the place; what it says is the same to look at.
            let result = Model::from_bytes(net(layer, ""));
            let kind = result.expect_err(what).kind();
            cases.push(Case::new("ir", format!("{what}, {k}"), net(layer, ""), kind, ""));
        }
    }
    check(cases);
    report("ir");
}

#[cfg(unix)]
#[test]
fn files_of_constants() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let good = constant(0, "f32", "6", "0", "24") + &layer(1, "Result", "", 1, 0);
    let good = net(&good, &edge((0, 0), (1, 0)));
    let model = |name: &str, bytes: &[u8]| -> PathBuf {
        fs::write(at(&format!("{name}.xml")), bytes).unwrap();
        at(&format!("{name}.xml"))
    };
    let mut cases = Vec::new();
    let mut case = |name: &str, path: &Path, kind: Kind, text: &str| {
        cases.push(Case::new("ir", name, path, kind, text));
    };
    fs::write(at("good.bin"), [7; 24]).unwrap();
    Model::load(model("good", &good)).unwrap();
    case("no file", &model("none", &good), Kind::Io, "none.bin");
    fs::create_dir(at("folder.bin")).unwrap();
    case("a folder", &model("folder", &good), Kind::Model, "is not a regular file");
    std::os::unix::fs::symlink("good.bin", at("link.bin")).unwrap();
    case("a link", &model("link", &good), Kind::Input, "is behind a link");
    std::os::unix::fs::symlink("/dev/zero", at("zero.bin")).unwrap();
    case("a device", &model("zero", &good), Kind::Input, "is behind a link");
    fs::write(at("other"), [7; 24]).unwrap();
    fs::hard_link(at("other"), at("hard.bin")).unwrap();
    case("a hard link", &model("hard", &good), Kind::Input, "more than one hard link");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, at("fifo.bin"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    case("a FIFO", &model("fifo", &good), Kind::Model, "is not a regular file");
    File::create(at("huge.bin")).unwrap().set_len(1 << 40).unwrap();
    case("a terabyte", &model("huge", &good), Kind::Limit, "Limits::file_bytes");
    fs::write(at("ranges.bin"), [1; 24]).unwrap();
    for (k, (dtype, shape, offset, size)) in [
        ("f32", "6", "1", "24"),
        ("f32", "6", "18446744073709551615", "24"),
        ("f32", "6", "0", "18446744073709551615"),
        ("f32", "6", "18446744073709551615", "18446744073709551615"),
        ("f32", "6", "-1", "24"),
        ("f32", "6", "0", "23"),
        ("f32", "5", "0", "24"),
        ("f32", "4294967296,4294967296", "0", "24"),
        ("f32", "18446744073709551615", "0", "24"),
        ("f32", "18446744073709551616", "0", "24"),
        ("f32", "-6", "0", "24"),
        ("f32", "9223372036854775807,0", "0", "4"),
        ("boolean", "24", "0", "25"),
        ("string", "6", "0", "24"),
        ("string", "16843009", "0", "24"),
    ]
    .into_iter()
    .enumerate()
    {
        let bytes = net(&constant(0, dtype, shape, offset, size), "");
        let path = at(&format!("ranges{k}.xml"));
        fs::write(&path, bytes).unwrap();
        fs::copy(at("ranges.bin"), at(&format!("ranges{k}.bin"))).unwrap();
        case(&format!("{dtype} [{shape}] of {size} at {offset}"), &path, Kind::Model, "");
    }
    check(cases);
    report("ir");
}

/// Constants may share bytes of their file; what each makes of them is paid for.
#[test]
fn constants_that_share_bytes() {
    use crate::memory::peak_of;
    let folder = tempfile::tempdir().unwrap();
    const LEN: usize = 64 << 10;
    const LAYERS: u64 = 50;
    let mut strings = [1u32.to_le_bytes(), 0u32.to_le_bytes(), (LEN as u32 - 12).to_le_bytes()].concat();
    strings.resize(LEN, b'x');
    let many = LEN / 4 - 2;
    let mut empty = (many as u32).to_le_bytes().to_vec();
    empty.resize(LEN, 0);
    let mut wrong = Vec::new();
    // As many as the file has, and fewer.
    for (dtype, shape, content) in [
        ("u2", (4 * LEN).to_string(), vec![0; LEN]),
        ("i4", (2 * LEN).to_string(), vec![0; LEN]),
        ("string", "1".to_string(), strings),
        ("string", many.to_string(), empty.clone()),
        ("string", "1".to_string(), empty),
        ("f32", (LEN / 4).to_string(), vec![0; LEN]),
    ] {
        let layers: String = (0..LAYERS).map(|id| constant(id, dtype, &shape, "0", &LEN.to_string())).collect();
        let (path, bytes) = (folder.path().join("model.xml"), net(&layers, ""));
        fs::write(&path, &bytes).unwrap();
        fs::write(folder.path().join("model.bin"), &content).unwrap();
        let mut limits = Limits::default();
        (limits.load_bytes, limits.load_bytes_per_byte) = (1 << 20, 4);
        let promised = limits.load_bytes + 4 * (bytes.len() + LEN) as u64;
        let (result, peak) = peak_of(|| Model::options().limits(limits).load(&path).map(drop));
        println!("{LAYERS} constants of {dtype} of {LEN} B: {} B of {promised}: {:?}", peak.bytes, result.is_ok());
        if peak.bytes > promised {
            wrong.push(format!("constants of {dtype} take {} bytes, and {promised} are promised", peak.bytes));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Many results of one value, and a layer of many ports, take a time in proportion to the text.
#[test]
fn nothing_takes_forever() {
    const MANY: u64 = 100_000;
    let results: String = (1..=MANY).map(|id| layer(id, "Result", "", 1, 0)).collect();
    let to_results: String = (1..=MANY).map(|id| edge((0, 0), (id, 0))).collect();
    let wide = layer(1, "Gather", "", MANY as usize, 1);
    let to_ports: String = (0..MANY).map(|port| edge((0, 0), (1, port))).collect();
    for (name, bytes) in
        [("results", net(&(parameter(0) + &results), &to_results)), ("ports", net(&(parameter(0) + &wide), &to_ports))]
    {
        let mut limits = Limits::default();
        limits.load_bytes = 1 << 31;
        let loaded = on_thread(name, 1 << 20, move || Model::options().limits(limits).from_bytes(bytes));
        match (name, loaded.unwrap()) {
            ("results", model) => assert_eq!(model.unwrap().outputs().len(), MANY as usize),
            (_, model) => {
                let error = model.unwrap_err();
                assert_eq!(error.kind(), Kind::Model);
                assert!(error.to_string().contains("inputs"), "{error}");
            }
        }
    }
}

/// What loading a network costs by its bill, and what it takes: the bill is never less.
#[test]
fn networks_take_no_more_than_their_bill() {
    const MANY: u64 = 1025;
    let ids = |first: u64| (first..first + MANY).map(|id| format!("{id}"));
    let named = |kind: &str, name: &str, data: &str, input: &str, names: &str| {
        let output = if names.is_empty() { String::new() } else { format!("<port id=\"9\" names=\"{names}\"/>") };
        format!(
            "<layer id=\"{name}\" name=\"{name}\" type=\"{kind}\" version=\"opset8\"><data {data}/>\
             <input>{input}</input><output>{output}</output></layer>"
        )
    };
    let floats = "element_type=\"f32\" shape=\"2\"";
    let results: String = (1..=MANY).map(|id| layer(id, "Result", "", 1, 0)).collect();
    let to_results: String = (1..=MANY).map(|id| edge((0, 0), (id, 0))).collect();
    let parameters: String = ids(0).map(|id| named("Parameter", &id, floats, "", &id)).collect();
    let names: Vec<String> = ids(1_000_000).collect();
    let wide: String = format!("{}{}", parameter(0), named("Gather", "1", "", "", &names.join(",")));
    let whole = [parameter(0), layer(1, "Parameter", "element_type=\"i64\" shape=\"1\"", 0, 1)].concat();
    let gathers: String = (3..3 + MANY).map(|id| layer(id, "Gather", "batch_dims=\"0\"", 3, 1)).collect();
    let axis = layer(2, "Parameter", "element_type=\"i64\" shape=\"\"", 0, 1);
    let chain: String = (3..3 + MANY)
        .map(|id| {
            let from = if id == 3 { (0, 0) } else { (id - 1, 3) };
            edge(from, (id, 0)) + &edge((1, 0), (id, 1)) + &edge((2, 0), (id, 2))
        })
        .collect();
    // Names that are longer where they are shown than in the file, and long names.
    let shown = "\u{202e}".repeat(300);
    let range = format!("element_type=\"f32\" shape=\"{}1..\"", "..,".repeat(63));
    let ranges: String = (0..2049)
        .map(|id| layer(id, "Parameter", &range, 0, 1).replace("name=\"l", &format!("name=\"{shown}")))
        .collect();
    let long_name = |text: String| text.replace("name=\"l", &format!("name=\"{}", "n".repeat(60_000)));
    let inputs: String = (1..=100).map(|id| long_name(layer(2 * id, "Parameter", floats, 0, 1))).collect();
    let outputs: String = (1..=100).map(|id| long_name(layer(2 * id + 1, "Result", "", 1, 0))).collect();
    let through: String = (1..=100).map(|id| edge((2 * id, 0), (2 * id + 1, 0))).collect();
    let commas = ",".repeat(60_000);
    let commas: String = (0..20).map(|id| named("Parameter", &id.to_string(), floats, "", &commas)).collect();
    let long: String =
        (0..9).map(|id| named("Parameter", &format!("{id}{}", "0".repeat(15)), floats, "", "x")).collect();
    let ports: String = (0..4097).map(|port| format!("<port id=\"{port}\"/>")).collect();
    let nets = [
        ("results", net(&(parameter(0) + &results), &to_results)),
        ("parameters", net(&parameters, "")),
        ("names of a port", net(&wide, "")),
        ("gathers in a chain", net(&(whole + &axis + &gathers), &chain)),
        ("long ids", net(&long, "")),
        ("ranges", net(&ranges, "")),
        ("parameters of long names", net(&inputs, "")),
        ("results of long names", net(&(inputs.clone() + &outputs), &through)),
        ("commas", net(&commas, "")),
        ("ports", net(&named("Gather", "1", "", &ports, ""), "")),
        ("nothing else", net("<layer id=\"1\"/>", "")),
        ("layers of nothing", net(&ids(0).map(|id| format!("<layer id=\"{id}\"/>")).collect::<String>(), "")),
    ];
    let cost = |(name, bytes): (&str, Vec<u8>)| {
        let bill = crate::billing::bill(&bytes);
        cost_by(name, bytes, bill)
    };
    check_costs(nets.into_iter().map(cost).collect());
}
