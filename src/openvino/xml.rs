//! The network in the `.xml` file. Only XML's own five entities are expanded, nothing nests deeper than the limit, and
//! memory is charged as it is taken.

use crate::error::{Error, Result, escape, quote};
use crate::files::ModelFiles;
use crate::limits::{Limits, exceeded};
use crate::schema::OPENVINO_DOMAIN;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct Net {
    pub(super) name: String,
    pub(super) version: u32,
    pub(super) layers: Vec<Layer>,
    pub(super) edges: Vec<Edge>,
}

#[derive(Debug, Default)]
pub(super) struct Layer {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) version: String,
    /// The content of `<data>`.
    pub(super) data: Vec<(String, String)>,
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
}

#[derive(Debug, Default)]
pub(super) struct Port {
    pub(super) id: u64,
    /// The first name of the tensor, if it has any.
    pub(super) name: String,
}

/// From an output port of a layer to an input port: layer and port of each.
#[derive(Debug, Default)]
pub(super) struct Edge {
    pub(super) from: (u64, u64),
    pub(super) to: (u64, u64),
}

/// Domain and name of each operation of a network.
pub(crate) fn operators(file: &[u8], files: &ModelFiles) -> Result<BTreeSet<(String, String)>> {
    files.budget.allow_for(file.len() as u64);
    let (net, cost) = read(file, &files.limits)?;
    files.budget.take(cost)?;
    Ok(net.layers.into_iter().map(|layer| (OPENVINO_DOMAIN.to_string(), layer.kind)).collect())
}

impl Layer {
    /// An attribute of `<data>`.
    pub(super) fn attribute(&self, name: &str) -> Result<&str> {
        let found = self.data.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        found.ok_or_else(|| Error::model(format!("it has no {name}")))
    }
}

/// The position of an element. All others are skipped with their content.
#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    Document,
    Net,
    Layers,
    Layer,
    Input,
    Output,
    Edges,
    Other,
}

/// The IR versions that can be read.
const VERSIONS: std::ops::RangeInclusive<u32> = 10..=11;

/// The network, and the approximate memory that it takes.
pub(super) fn read(file: &[u8], limits: &Limits) -> Result<(Net, u64)> {
    let text = std::str::from_utf8(file).map_err(|e| Error::model(format!("the file is not valid XML: {e}")))?;
    let allowed = limits.load_bytes.saturating_add(limits.load_bytes_per_byte.saturating_mul(file.len() as u64));
    let mut reader = Reader::from_str(text);
    let mut net = Net::default();
    let mut open = vec![At::Document];
    let (mut cost, mut found) = (2 * file.len() as u64, false);
    loop {
        let at = reader.buffer_position();
        let malformed = |what: String| Error::model(format!("the file is not valid XML: at byte {at}: {what}"));
        let inside = open.last().copied().unwrap_or(At::Other);
        let event = reader.read_event().map_err(|e| malformed(escape(&e.to_string()).into_owned()))?;
        let blank = match &event {
            Event::Text(text) => text.trim_ascii().is_empty(),
            Event::Start(_) | Event::Empty(_) => !found,
            Event::CData(_) | Event::GeneralRef(_) => false,
            _ => true,
        };
        if inside == At::Document && !blank {
            return Err(malformed("there is content beside the network".to_string()));
        }
        match event {
            Event::Start(element) => {
                cost += net.take(inside, &element, limits)?;
                open.push(entered(inside, &element));
                found |= inside == At::Document;
                if open.len() > limits.nesting {
                    return Err(exceeded(
                        "nesting",
                        "elements nest",
                        open.len() as u128,
                        "deep",
                        limits.nesting as u64,
                    ));
                }
            }
            Event::Empty(element) => {
                cost += net.take(inside, &element, limits)?;
                found |= inside == At::Document;
            }
            Event::End(_) => {
                open.pop();
            }
            Event::DocType(_) => return Err(malformed("a document type, which may define entities".to_string())),
            Event::Eof => break,
            _ => {}
        }
        if cost > allowed {
            return Err(exceeded("load_bytes", "reading the network would take", cost.into(), "bytes", allowed));
        }
    }
    if open.len() != 1 {
        return Err(Error::model("the file is cut short: elements are open at its end"));
    }
    if !found {
        return Err(Error::model("the file has no network"));
    }
    Ok((net, cost))
}

fn entered(inside: At, element: &BytesStart<'_>) -> At {
    match (inside, element.name().as_ref()) {
        (At::Document, "net") => At::Net,
        (At::Net, "layers") => At::Layers,
        (At::Net, "edges") => At::Edges,
        (At::Layers, "layer") => At::Layer,
        (At::Layer, "input") => At::Input,
        (At::Layer, "output") => At::Output,
        _ => At::Other,
    }
}

impl Net {
    /// Reads an element. Returns an upper bound on the memory that this takes.
    fn take(&mut self, inside: At, element: &BytesStart<'_>, limits: &Limits) -> Result<u64> {
        match (inside, element.name().as_ref()) {
            (At::Document, "net") => {
                let [name, version] = attributes(element, ["name", "version"], limits)?;
                (self.name, self.version) = (name.unwrap_or_default(), number(version, "version of the network")?);
                if !VERSIONS.contains(&self.version) {
                    let (version, first, last) = (self.version, VERSIONS.start(), VERSIONS.end());
                    return Err(Error::unsupported(format!("IR version {version}: supported {first} and {last}"))
                        .at(|place| place.value = Some(version.into())));
                }
            }
            (At::Document, other) => {
                return Err(Error::model(format!(
                    "the file is not an OpenVINO network: it starts with {}",
                    quote(other)
                )));
            }
            (At::Layers, "layer") => {
                let known = ["id", "name", "type", "version"];
                let [id, name, kind, version] = attributes(element, known, limits)?;
                if self.layers.len() >= limits.nodes {
                    let (n, allowed) = (limits.nodes as u128 + 1, limits.nodes as u64);
                    return Err(exceeded("nodes", "the network has", n, "layers or more", allowed));
                }
                self.layers.push(Layer {
                    id: number(id, "id of a layer")?,
                    name: name.unwrap_or_default(),
                    kind: kind.unwrap_or_default(),
                    version: version.unwrap_or_default(),
                    ..Layer::default()
                });
                // Tables keep it too.
                return Ok(2048 + 6 * self.layers.last().map_or(0, |layer| layer.name.len()) as u64);
            }
            (At::Layer, "data") => {
                let Some(layer) = self.layers.last_mut() else { return Ok(0) };
                for attribute in element.attributes().with_checks(false) {
                    let (key, value) = pair(attribute, limits)?;
                    if layer.data.iter().any(|(other, _)| *other == key) {
                        return Err(twice(element, &key));
                    }
                    if layer.data.len() >= MAX_ATTRIBUTES {
                        return Err(Error::model(format!("a layer has more than {MAX_ATTRIBUTES} attributes")));
                    }
                    layer.data.push((key, value));
                }
                return Ok(256 * layer.data.len() as u64);
            }
            (At::Input | At::Output, "port") => {
                let [id, names] = attributes(element, ["id", "names"], limits)?;
                let port = Port { id: number(id, "id of a port")?, name: first_name(&names.unwrap_or_default()) };
                let Some(layer) = self.layers.last_mut() else { return Ok(0) };
                let cost = 512 + 6 * port.name.len() as u64;
                let ports = if inside == At::Input { &mut layer.inputs } else { &mut layer.outputs };
                ports.push(port);
                return Ok(cost);
            }
            (At::Edges, "edge") => {
                let known = ["from-layer", "from-port", "to-layer", "to-port"];
                let [from, from_port, to, to_port] = attributes(element, known, limits)?;
                self.edges.push(Edge {
                    from: (number(from, "from-layer")?, number(from_port, "from-port")?),
                    to: (number(to, "to-layer")?, number(to_port, "to-port")?),
                });
                return Ok(512);
            }
            _ => {}
        }
        Ok(0)
    }
}

/// Maximum number of attributes of a layer: more would make look-ups slow.
const MAX_ATTRIBUTES: usize = 100;

/// The values of known attributes; others are skipped.
fn attributes<const N: usize>(
    element: &BytesStart<'_>,
    known: [&str; N],
    limits: &Limits,
) -> Result<[Option<String>; N]> {
    let mut found = [const { None }; N];
    for attribute in element.attributes().with_checks(false) {
        let (key, value) = pair(attribute, limits)?;
        let place = known.iter().position(|name| *name == key);
        if let Some(place) = place.and_then(|place| found.get_mut(place)) {
            if place.is_some() {
                return Err(twice(element, &key));
            }
            *place = Some(value);
        }
    }
    Ok(found)
}

fn pair(
    attribute: Result<quick_xml::events::attributes::Attribute<'_>, impl std::fmt::Display>,
    limits: &Limits,
) -> Result<(String, String)> {
    let attribute =
        attribute.map_err(|e| Error::model(format!("the file is not valid XML: {}", escape(&e.to_string()))))?;
    let key = attribute.key.as_ref().to_string();
    let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0).map_err(|e| {
        Error::model(format!("the file is not valid XML: attribute {}: {}", quote(&key), escape(&e.to_string())))
    })?;
    let longest = value.len().max(key.len());
    if longest > limits.name_bytes {
        let allowed = limits.name_bytes as u64;
        return Err(exceeded("name_bytes", "an attribute of an element has", longest as u128, "bytes", allowed));
    }
    Ok((key, value.into_owned()))
}

fn twice(element: &BytesStart<'_>, key: &str) -> Error {
    let name = element.name();
    let element = name.as_ref();
    Error::model(format!("an element <{element}> has the attribute {} twice", quote(key)))
}

fn number<T: std::str::FromStr>(value: Option<String>, what: &str) -> Result<T> {
    let value = value.ok_or_else(|| Error::model(format!("the {what} is missing")))?;
    value.trim().parse().map_err(|_| Error::model(format!("the {what} is {}: a number is needed", quote(&value))))
}

/// The first of several names separated by commas; a comma within a name is escaped with a backslash.
fn first_name(names: &str) -> String {
    let mut first = String::new();
    let mut rest = names.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' if rest.next_if_eq(&',').is_some() => first.push(','),
            ',' if first.is_empty() => {}
            ',' => break,
            c => first.push(c),
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn error(text: &str) -> Error {
        read(text.as_bytes(), &Limits::default()).unwrap_err()
    }

    #[test]
    fn names() {
        assert_eq!(first_name(r"a\,b\c,out"), r"a,b\c");
        assert_eq!(first_name(r",,\,,out"), ",");
        assert_eq!(first_name(","), "");
    }

    #[test]
    fn what_is_no_network() {
        assert_eq!(error("<a/>").to_string(), "the file is not an OpenVINO network: it starts with \"a\"");
        assert_eq!(error("<net name='x' version='9'/>").to_string(), "IR version 9: supported 10 and 11");
        assert_eq!(error("<net name='x'/>").to_string(), "the version of the network is missing");
        assert_eq!(error("<net version='11'>").to_string(), "the file is cut short: elements are open at its end");
        assert_eq!(error("<!-- only this -->").to_string(), "the file has no network");
        assert!(error("<net version='11'></a>").to_string().starts_with("the file is not valid XML: at byte "));
        assert_eq!(
            error("<net version='11' version='10'/>").to_string(),
            "an element <net> has the attribute \"version\" twice"
        );
    }

    #[test]
    fn operators_of_a_network() {
        let layer = |id, kind| format!("<layer id='{id}' name='x' type='{kind}' version='opset8'/>");
        let layers = [layer(0, "Parameter"), layer(1, "Gather"), layer(2, "Gather")].concat();
        let file = format!("<net version='11'><layers>{layers}</layers></net>");
        let named = operators(file.as_bytes(), &ModelFiles::none()).unwrap();
        let named: Vec<(&str, &str)> = named.iter().map(|(domain, name)| (domain.as_str(), name.as_str())).collect();
        assert_eq!(named, [(OPENVINO_DOMAIN, "Gather"), (OPENVINO_DOMAIN, "Parameter")]);
        assert!(operators(b"<net", &ModelFiles::none()).is_err());
    }

    #[test]
    fn no_entities() {
        let bomb = "<!DOCTYPE a [<!ENTITY b \"cc\">]><net name='&b;' version='11'/>";
        assert!(error(bomb).to_string().ends_with("a document type, which may define entities"));
        assert!(
            error("<net name='&b;' version='11'/>")
                .to_string()
                .starts_with("the file is not valid XML: attribute \"name\"")
        );
    }

    #[test]
    fn limits() {
        let limit = |text: &str| {
            let error = error(text);
            assert_eq!(error.kind(), Kind::Limit, "{error}");
            error.place().limit
        };
        assert_eq!(limit(&format!("<net version='11'>{}", "<a>".repeat(100))), Some("nesting"));
        let layers = "<layer id='1'/>".repeat(100_000);
        assert_eq!(limit(&format!("<net version='11'><layers>{layers}</layers></net>")), Some("load_bytes"));
        assert_eq!(limit(&format!("<net version='11' name='{}'/>", "x".repeat(70_000))), Some("name_bytes"));
    }
}
