//! Errors: who must act, where, which value, what is allowed.

mod needs;
mod remedy;

pub(crate) use needs::Unresolved;
pub use needs::{Missing, Needs};
pub use remedy::Remedy;

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

/// The result of a function that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who must act for an error to go away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The system: a file can't be opened or read.
    Io,
    /// The author of the model: the file departs from the standard.
    Model,
    /// The caller: a feed or a value met at run time is wrong, or an option is missing.
    Input,
    /// Us: the standard has it, but this runtime doesn't.
    Unsupported,
    /// The caller, who may raise a [limit](crate::Limits) that was exceeded.
    Limit,
    /// Nobody: the caller asked to stop.
    Cancelled,
    /// Us: a mistake in this library. Please report it.
    Internal,
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Io => "io",
            Kind::Model => "model",
            Kind::Input => "input",
            Kind::Unsupported => "unsupported",
            Kind::Limit => "limit",
            Kind::Cancelled => "cancelled",
            Kind::Internal => "internal",
        })
    }
}

/// Where an error happened. Everything that is known is filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The calls of model functions around the node, outermost first, as errors show them.
    pub function: Option<String>,
    /// Position of the node in its graph, from 0.
    pub node_index: Option<usize>,
    /// Name of the node, if it has one.
    pub node: Option<String>,
    /// The node's operator, such as `Gather`.
    pub operator: Option<String>,
    /// Domain of the operator; empty for `ai.onnx`.
    pub domain: Option<String>,
    /// The version (`since_version`) of the operator that applies.
    pub version: Option<i64>,
    /// Name of a value of the graph: an input, an output, an initializer, or a node's output. For an error of a run it is
    /// what stands for the `parameter`, if that has another name.
    pub value_name: Option<String>,
    /// Name of the operator's formal input or output, as its schema has it.
    pub parameter: Option<String>,
    /// Name of the attribute.
    pub attribute: Option<String>,
    /// The axis in question, as it was given.
    pub axis: Option<i64>,
    /// The size of that axis.
    pub size: Option<usize>,
    /// The offending value.
    pub value: Option<i128>,
    /// The position of the offending value in its tensor.
    pub position: Option<Vec<usize>>,
    /// Name of the [limit](crate::Limits) that was exceeded.
    pub limit: Option<&'static str>,
}

/// An error with its [kind](Kind), its [place](Place) and a message of one or two lines.
///
/// If one call finds several faults, as loading does, [`Error::causes`] has them all.
///
/// The text ends with the [`Remedy`], if there is one, in terms of the library's API. `{error:#}` leaves that out, for
/// programs that describe it in their own terms.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    place: Place,
    message: String,
    causes: Vec<Error>,
    /// The number of faults; more than `causes` if there were too many to keep.
    faults: usize,
    needs: Option<Box<Needs>>,
    remedy: Option<Remedy>,
    source: Option<Source>,
}

type Source = Box<dyn std::error::Error + Send + Sync>;

/// An error's text is cut to this many bytes.
const MAX_TEXT: usize = 4096;

impl Error {
    /// An error of a kind. Pass texts that come from a file or a caller through [`quote`].
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        let message = bounded(message.into());
        let (place, causes, needs, remedy, source) = Default::default();
        Error(Box::new(Inner { kind, place, message, causes, faults: 1, needs, remedy, source }))
    }

    /// [`Kind::Model`]: the model departs from the standard.
    pub fn model(message: impl Into<String>) -> Error {
        Error::new(Kind::Model, message)
    }

    /// [`Kind::Input`]: a feed, or a value met at run time, is not allowed.
    pub fn input(message: impl Into<String>) -> Error {
        Error::new(Kind::Input, message)
    }

    /// [`Kind::Unsupported`]: this runtime doesn't have it.
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::new(Kind::Unsupported, message)
    }

    /// [`Kind::Internal`]: a mistake of ours.
    #[cold]
    pub(crate) fn bug(message: &str) -> Error {
        Error::new(Kind::Internal, format!("{message}: this is a bug in onnxref, please report it"))
    }

    pub(crate) fn io(message: impl Into<String>, source: std::io::Error) -> Error {
        Error::new(Kind::Io, format!("{}: {source}", message.into())).caused_by(source)
    }

    /// Sets the error that caused it, which [`source`](std::error::Error::source) returns.
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(source.into());
        self
    }

    /// Merges several errors; [`Error::causes`] lists them. A single error is returned as it is; `None` if there is
    /// none. `faults` is the number of errors, including those that were not kept.
    pub(crate) fn all(mut causes: Vec<Error>, faults: usize, needs: Option<Needs>) -> Option<Error> {
        // Faults of the model outweigh missing operators.
        let gravity = |error: &&Error| match error.kind() {
            Kind::Model => 0,
            Kind::Unsupported => 2,
            _ => 1,
        };
        let gravest = causes.iter().min_by_key(gravity)?;
        let mut error = match &needs {
            Some(needs) if gravest.kind() == Kind::Unsupported && needs.missing_operators > 1 => {
                Error::unsupported(format!("the model {needs}"))
            }
            _ if faults < 2 => {
                let mut only = causes.pop()?;
                only.0.needs = needs.map(Box::new);
                return Some(only);
            }
            _ => {
                let mut error = Error::new(gravest.kind(), cut(format!("{gravest:#}"), MAX_TEXT / 2));
                // The message contains the place already.
                (error.0.place, error.0.remedy) = (gravest.0.place.clone(), gravest.0.remedy);
                error
            }
        };
        (error.0.causes, error.0.faults, error.0.needs) = (causes, faults, needs.map(Box::new));
        Some(error)
    }

    /// About how much memory the error takes.
    pub(crate) fn weight(&self) -> usize {
        let Inner { place, message, .. } = &*self.0;
        let node = [&place.function, &place.node, &place.operator, &place.domain];
        let names = node.into_iter().chain([&place.value_name, &place.parameter, &place.attribute]);
        let names: usize = names.flatten().map(String::len).sum();
        size_of::<Inner>() + message.len() + names
    }

    /// Who must act.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Where it happened.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// What the caller may allow to make the error go away, if anything.
    pub fn remedy(&self) -> Option<Remedy> {
        self.0.remedy
    }

    /// The operators that the model needs and that can't run here, if there are any.
    pub fn needs(&self) -> Option<&Needs> {
        self.0.needs.as_deref()
    }

    /// The number of faults that were found together. [`Error::causes`] has no more than about a thousand of them.
    pub fn fault_count(&self) -> usize {
        self.0.faults
    }

    /// The faults that were found together, in the model's order, then the operators that are missing here; only this
    /// error if there was one.
    pub fn causes(&self) -> &[Error] {
        if self.0.causes.is_empty() { std::slice::from_ref(self) } else { &self.0.causes }
    }

    /// As [`Error::causes`], and the number of faults.
    pub(crate) fn into_causes(mut self) -> (Vec<Error>, usize) {
        let (causes, faults) = (std::mem::take(&mut self.0.causes), self.0.faults);
        if causes.is_empty() { (vec![self], 1) } else { (causes, faults) }
    }

    /// Error for a failed allocation.
    pub(crate) fn out_of_memory(what: &str, bytes: u64) -> Error {
        Error::new(Kind::Limit, format!("{what}: the system has no {bytes} bytes of memory left"))
    }

    /// Whether the error is a failed allocation.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.kind() == Kind::Limit && self.place().limit.is_none()
    }

    /// Sets what the caller may allow to make the error go away.
    pub(crate) fn with_remedy(mut self, remedy: Remedy) -> Error {
        self.0.remedy = Some(remedy);
        self
    }

    /// Changes the kind.
    pub(crate) fn with_kind(mut self, kind: Kind) -> Error {
        self.0.kind = kind;
        self
    }

    /// Prefixes the message with `what` and a colon.
    pub(crate) fn within(mut self, what: &str) -> Error {
        self.0.message = bounded(format!("{what}: {}", self.0.message));
        self
    }

    /// Appends `more` to the message.
    pub(crate) fn and(mut self, more: &str) -> Error {
        self.0.message = bounded(self.0.message + more);
        self
    }

    /// Says which value of the graph a formal input is, in the message where that names it, and in the place.
    pub(crate) fn naming(mut self, parameter: &str, value_name: &str) -> Error {
        let formal = quote(parameter);
        let Inner { place, message, .. } = &mut *self.0;
        if let Some(at) = message.find(&formal) {
            message.insert_str(at + formal.len(), &format!(" (value {})", quote(value_name)));
            *message = bounded(std::mem::take(message));
        }
        if place.parameter.as_deref() == Some(parameter) && place.value_name.is_none() {
            place.value_name = Some(value_name.to_string());
        }
        self
    }

    /// Sets the formal input or output of the operator that the error is about.
    pub fn parameter(self, name: &str) -> Error {
        self.at(|place| place.parameter = Some(name.to_string()))
    }

    /// Sets the value of the graph that the error is about.
    pub fn about(self, value_name: &str) -> Error {
        self.at(|place| place.value_name = Some(value_name.to_string()))
    }

    /// Sets the attribute that the error is about.
    pub fn attribute(self, name: &str) -> Error {
        self.at(|place| place.attribute = Some(name.to_string()))
    }

    /// Sets the axis that the error is about.
    pub fn axis(self, axis: i64) -> Error {
        self.at(|place| place.axis = Some(axis))
    }

    /// Sets the size of the axis.
    pub fn size(self, size: usize) -> Error {
        self.at(|place| place.size = Some(size))
    }

    /// Sets the offending value.
    pub fn value(self, value: impl Into<i128>) -> Error {
        let value = value.into();
        self.at(|place| place.value = Some(value))
    }

    /// Sets the position of the offending value in its tensor.
    pub fn position(self, position: Vec<usize>) -> Error {
        self.at(|place| place.position = Some(position))
    }

    /// Changes the place with `fill`.
    pub fn at(mut self, fill: impl FnOnce(&mut Place)) -> Error {
        fill(&mut self.0.place);
        self
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { place, message, causes, faults, remedy, .. } = &*self.0;
        if causes.is_empty()
            && let Some(index) = place.node_index
        {
            if let Some(function) = &place.function {
                write!(f, "in {function}: ")?;
            }
            match place.node.as_deref() {
                Some(name) => write!(f, "node {}", quote(name))?,
                _ => write!(f, "node #{index}")?,
            }
            if let Some(operator) = &place.operator {
                write!(f, " ({}", operator_label(place.domain.as_deref().unwrap_or(""), operator))?;
                if let Some(version) = place.version {
                    write!(f, "-{version}")?;
                }
                f.write_char(')')?;
            }
            f.write_str(": ")?;
        }
        f.write_str(message)?;
        if let Some(remedy) = remedy.filter(|_| !f.alternate()) {
            write!(f, " ({remedy})")?;
        }
        let missing = self.needs().filter(|_| self.kind() == Kind::Unsupported);
        match (causes.as_slice(), missing) {
            ([], _) => Ok(()),
            (_, Some(needs)) => {
                const SHOWN: usize = 8;
                let names: Vec<String> = needs.missing.iter().take(SHOWN).map(Missing::to_string).collect();
                let more = if needs.missing.len() > SHOWN { ", …" } else { "" };
                write!(f, ": {}{more}", names.join(", "))
            }
            _ => write!(f, "\n(and {} more)", faults - 1),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} error: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.source {
            Some(source) => Some(&**source),
            None => self.0.causes.iter().find(|cause| cause.kind() == self.kind())?.source(),
        }
    }
}

/// The text, cut to [`MAX_TEXT`].
fn bounded(text: String) -> String {
    cut(text, MAX_TEXT)
}

fn cut(mut text: String, len: usize) -> String {
    if text.len() > len {
        let cut = (0..len - 2).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// An operator as errors name it: `Gather`, `com.example::Gather`.
pub(crate) fn operator_label<'a>(domain: &str, name: &'a str) -> Cow<'a, str> {
    let name = escape(name);
    if domain.is_empty() { name } else { Cow::Owned(format!("{}::{name}", escape(domain))) }
}

/// A name from a file or a caller, safe for an error's text: in quotes, cut, and with every character escaped that
/// could change how the rest of the line is shown.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", escape(name))
}

/// As [`quote`], without the quotes.
pub(crate) fn escape(name: &str) -> Cow<'_, str> {
    const MAX_NAME: usize = 100;
    let plain = |c: char| !(c.is_control() || matches!(c, '"' | '\\') || invisible(c));
    if name.len() <= MAX_NAME && name.chars().all(plain) {
        return Cow::Borrowed(name);
    }
    let mut text = String::new();
    for (at, c) in name.char_indices() {
        if at >= MAX_NAME {
            let _ = write!(text, "…({} bytes)", name.len());
            break;
        }
        if plain(c) {
            text.push(c);
        } else if invisible(c) {
            let _ = write!(text, "{}", c.escape_unicode());
        } else {
            let _ = write!(text, "{}", c.escape_debug());
        }
    }
    Cow::Owned(text)
}

/// Characters that reorder, join or hide text: bidirectional controls, zero-width marks, line separators, tags.
fn invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_stands_before_the_message() {
        let error = Error::input("axis 3 is out of range").at(|place| {
            place.node_index = Some(4);
            place.node = Some("lookup".into());
            place.operator = Some("Gather".into());
            place.version = Some(13);
        });
        assert_eq!(error.to_string(), "node \"lookup\" (Gather-13): axis 3 is out of range");
        let unnamed = error.at(|place| {
            place.node = None;
            place.domain = Some("com.example".into());
        });
        assert_eq!(unnamed.to_string(), "node #4 (com.example::Gather-13): axis 3 is out of range");
    }

    #[test]
    fn names_are_escaped_and_cut() {
        assert_eq!(quote("a\n\u{202e}b\"\u{1b}[1m"), r#""a\n\u{202e}b\"\u{1b}[1m""#);
        assert_eq!(quote(&"é".repeat(100)), format!("\"{}…(200 bytes)\"", "é".repeat(50)));
    }

    #[test]
    fn text_is_bounded() {
        let error = Error::model("x".repeat(10_000));
        assert!(error.to_string().len() <= MAX_TEXT);
    }

    #[test]
    fn several_causes_are_kept_and_the_worst_kind_rules() {
        let all = Error::all(vec![Error::unsupported("a"), Error::model("b"), Error::unsupported("c")], 3, None);
        let error = all.expect("three causes");
        assert_eq!(error.kind(), Kind::Model);
        assert_eq!(error.to_string(), "b\n(and 2 more)");
        assert_eq!(error.causes().len(), 3);
        assert_eq!(Error::model("alone").causes().len(), 1);
    }
}
