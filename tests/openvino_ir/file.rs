//! An `.xml` file that is not a network, is cut short or damaged, or exceeds a limit.

use crate::common::differences::{assert_as_expected, difference};
use crate::text::{FED, changed, check, feeds};
use onnxref::{Kind, Limits, Model};

#[test]
fn what_is_no_network() {
    let malformed = [
        ("a doctype", &[("<?xml version=\"1.0\"?>", "<!DOCTYPE net>")][..]),
        (
            "an entity that is defined",
            &[("<?xml version=\"1.0\"?>", "<!DOCTYPE net [<!ENTITY a \"b\">]>"), ("\"good\"", "\"&a;\"")],
        ),
        ("an entity from elsewhere", &[("<?xml version=\"1.0\"?>", "<!DOCTYPE net SYSTEM \"file:///etc/hostname\">")]),
        ("a doctype inside", &[("<layers>", "<!DOCTYPE net><layers>")]),
        ("another end", &[("</layers>", "</layer>")]),
        ("an end too many", &[("</net>", "</net></net>")]),
        ("two networks", &[("</net>", "</net><net version=\"11\"></net>")]),
        ("two networks, the second one empty", &[("</net>", "</net><net version=\"11\"/>")]),
        ("text behind", &[("</net>", "</net>text")]),
    ];
    let wrong = malformed.iter().filter_map(|(name, changes)| {
        let says = match Model::from_bytes(changed(FED, changes)) {
            Err(error) if error.kind() == Kind::Model => error.to_string(),
            other => format!("{:?}", other.map(drop)),
        };
        let doctype = name.contains("doctype") || name.contains("entity");
        let right = says.starts_with("the file is not valid XML: at byte ")
            && (!doctype || says.ends_with(": a document type, which may define entities"));
        (!right).then(|| format!("{name}: {says}"))
    });
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
    let mut bytes = FED.as_bytes().to_vec();
    bytes[30] = 0xff;
    let text = "the file is not valid XML: invalid utf-8 sequence of 1 bytes from index 30";
    assert_as_expected([difference("not UTF-8", Model::from_bytes(bytes), Kind::Model, text)]);
    check(&[
        (
            "an undefined entity",
            &[("\"good\"", "\"&a;\"")],
            Kind::Model,
            "the file is not valid XML: attribute \"name\": at 1..2: unrecognized entity `a`",
        ),
        (
            "an attribute twice",
            &[("layer id=\"0\"", "layer id=\"0\" id=\"0\"")],
            Kind::Model,
            "an element <layer> has the attribute \"id\" twice",
        ),
        (
            "a name twice",
            &[("<net", "<net name=\"a\"")],
            Kind::Model,
            "an element <net> has the attribute \"name\" twice",
        ),
        (
            "data twice",
            &[("shape=\"3,2\"", "shape=\"3,2\" shape=\"3,2\"")],
            Kind::Model,
            "an element <data> has the attribute \"shape\" twice",
        ),
        (
            "two data",
            &[("<data shape=\"3,2\"", "<data shape=\"3,2\"/><data shape=\"3,2\"")],
            Kind::Model,
            "an element <data> has the attribute \"shape\" twice",
        ),
        (
            "another document",
            &[("<net name=\"good\" version=\"11\">", "<html>"), ("</net>", "</html>")],
            Kind::Model,
            "the file is not an OpenVINO network: it starts with \"html\"",
        ),
        ("no version", &[("version=\"11\"", "")], Kind::Model, "the version of the network is missing"),
        (
            "a version in words",
            &[("version=\"11\"", "version=\"eleven\"")],
            Kind::Model,
            "the version of the network is \"eleven\": a number is needed",
        ),
        (
            "a version beyond numbers",
            &[("version=\"11\"", "version=\"4294967307\"")],
            Kind::Model,
            "the version of the network is \"4294967307\": a number is needed",
        ),
        (
            "IR version 0",
            &[("version=\"11\"", "version=\"0\"")],
            Kind::Unsupported,
            "IR version 0: supported 10 and 11",
        ),
        (
            "IR version 9",
            &[("version=\"11\"", "version=\"9\"")],
            Kind::Unsupported,
            "IR version 9: supported 10 and 11",
        ),
        (
            "IR version 12",
            &[("version=\"11\"", "version=\"12\"")],
            Kind::Unsupported,
            "IR version 12: supported 10 and 11",
        ),
        ("a layer without id", &[("layer id=\"0\"", "layer")], Kind::Model, "the id of a layer is missing"),
        (
            "a negative id",
            &[("layer id=\"0\"", "layer id=\"-1\"")],
            Kind::Model,
            "the id of a layer is \"-1\": a number is needed",
        ),
        (
            "an id beyond numbers",
            &[("layer id=\"0\"", "layer id=\"18446744073709551616\"")],
            Kind::Model,
            "the id of a layer is \"18446744073709551616\": a number is needed",
        ),
        ("a port without id", &[("port id=\"0\"", "port")], Kind::Model, "the id of a port is missing"),
        ("an edge from nowhere", &[("from-layer=\"0\"", "")], Kind::Model, "the from-layer is missing"),
        (
            "an edge from no port",
            &[("from-port=\"0\"", "from-port=\"\"")],
            Kind::Model,
            "the from-port is \"\": a number is needed",
        ),
        ("an edge to nowhere", &[("to-layer=\"3\"", "")], Kind::Model, "the to-layer is missing"),
        (
            "an edge to no port",
            &[("to-port=\"0\"", "to-port=\"a\"")],
            Kind::Model,
            "the to-port is \"a\": a number is needed",
        ),
    ]);
}

/// What is limited, and where.
#[test]
fn limits() {
    let limit = |name: &str, text: &str, limits: Limits, limit: &str, message: &str| {
        let result = Model::options().limits(limits).from_bytes(text.to_string());
        let place = result.as_ref().err().and_then(|error| error.place().limit);
        assert_eq!(place, Some(limit), "{name}: {result:?}");
        difference(
            name,
            result,
            Kind::Limit,
            &format!("{message} (Limits::{limit}, which LoadOptions::limits can raise)"),
        )
    };
    let many = |part: &str, n: usize| changed(FED, &[("\t</layers>", &format!("{}</layers>", part.repeat(n)))]);
    let set = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        limits
    };
    let deep = changed(FED, &[("<rt_info />", &format!("{}{}", "<a>".repeat(110), "</a>".repeat(110)))]);
    let long = changed(FED, &[("name=\"good\"", &format!("name=\"{}\"", "x".repeat(65_537)))]);
    let long_key = changed(FED, &[("<net", &format!("<net {}=\"\"", "x".repeat(65_537)))]);
    let grown = changed(FED, &[("name=\"good\"", &format!("name=\"{}\"", "\u{e9}".repeat(32_769)))]);
    let dims = changed(FED, &[("shape=\"3,2\"", &format!("shape=\"{}1\"", "1,".repeat(64)))]);
    assert_as_expected([
        limit("nesting", &deep, Limits::default(), "nesting", "elements nest 101 deep: the limit is 100"),
        limit(
            "a value",
            &long,
            Limits::default(),
            "name_bytes",
            "an attribute of an element has 65537 bytes: the limit is 65536",
        ),
        limit(
            "a name",
            &long_key,
            Limits::default(),
            "name_bytes",
            "an attribute of an element has 65537 bytes: the limit is 65536",
        ),
        limit(
            "bytes, not characters",
            &grown,
            Limits::default(),
            "name_bytes",
            "an attribute of an element has 65538 bytes: the limit is 65536",
        ),
        limit("layers", FED, set(|l| l.nodes = 4), "nodes", "the network has 5 layers or more: the limit is 4"),
        limit(
            "the file",
            FED,
            set(|l| l.file_bytes = 100),
            "file_bytes",
            &format!("the model has {} bytes: the limit is 100", FED.len()),
        ),
        limit(
            "dimensions",
            &dims,
            Limits::default(),
            "rank",
            "\"Parameter\" \"data\": a shape has 65 dimensions: the limit is 64",
        ),
    ]);
    for (name, part) in [
        ("layers", "<layer id='1'/>"),
        ("attributes", "<layer id='1'><data a='' b='' c='' d='' e=''/></layer>"),
        ("ports", "<layer id='1'><input><port id='1'/><port id='2'/></input></layer>"),
        ("names", "<layer id='1'><output><port id='1' names='a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p'/></output></layer>"),
    ] {
        let error = Model::from_bytes(many(part, 40_000)).unwrap_err();
        assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("load_bytes")), "{name}: {error}");
        assert!(error.to_string().starts_with("reading the network would take "), "{name}: {error}");
    }
    assert!(Model::options().limits(set(|l| l.nodes = 5)).from_bytes(FED).is_ok());
}

#[test]
fn attributes_are_not_too_many() {
    let attributes: String = (0..101).map(|k| format!(" a{k}=''")).collect();
    check(&[(
        "attributes",
        &[("<data batch_dims=\"0\"", &format!("<data{attributes}"))],
        Kind::Model,
        "a layer has more than 100 attributes",
    )]);
}

/// Each start of a file that is not all of it is an error, and no change makes loading or running fail otherwise.
#[test]
fn cut_and_damaged() {
    let whole = FED.trim_end();
    for end in 0..whole.len() {
        let error = Model::from_bytes(whole.as_bytes()[..end].to_vec()).map(drop).expect_err("a part is no network");
        assert_eq!(error.kind(), Kind::Model, "{end}: {error}");
    }
    assert!(Model::from_bytes(whole).is_ok());
    for at in 0..whole.len() {
        for by in [&b""[..], b"\"", b"<", b"9", b"&", b"\xff"] {
            let bytes = [&whole.as_bytes()[..at], by, &whole.as_bytes()[at + 1..]].concat();
            if let Ok(model) = Model::from_bytes(bytes) {
                let _ = model.run(feeds());
            }
        }
    }
}
