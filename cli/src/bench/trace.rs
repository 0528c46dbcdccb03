//! The nodes of a run as trace events, which the trace viewers of browsers show.

use onnxref::{NodeInfo, Value};
use onnxref_view::type_name;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum number of events. Later nodes are left out.
const MAX_EVENTS: usize = 1_000_000;

/// The events of a run.
pub(super) struct Trace {
    started: Instant,
    time: Duration,
    events: Vec<Event>,
    /// Nodes without an event.
    pub(super) lost: u64,
    /// The inputs of the nodes that have started.
    inputs: Vec<Vec<String>>,
}

/// A complete event. Times are in microseconds.
#[derive(Serialize)]
struct Event {
    name: String,
    cat: String,
    ph: &'static str,
    ts: f64,
    dur: f64,
    pid: u32,
    tid: u32,
    args: Args,
}

#[derive(Serialize, Default)]
struct Args {
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    outputs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    macs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

impl Trace {
    pub(super) fn new() -> Trace {
        Trace { started: Instant::now(), time: Duration::ZERO, events: Vec::new(), lost: 0, inputs: Vec::new() }
    }

    pub(super) fn starts(&mut self, inputs: &[Option<&Value>]) {
        self.inputs.push(inputs.iter().map(|value| value.map_or(String::new(), described)).collect());
    }

    pub(super) fn ends(
        &mut self,
        info: NodeInfo<'_>,
        outputs: &[(&str, &Value)],
        (start, end): (Instant, Instant),
        (macs, bytes): (u64, u64),
    ) {
        let inputs = self.inputs.pop().unwrap_or_default();
        if self.events.len() >= MAX_EVENTS {
            self.lost += 1;
            return;
        }
        let name = if info.name.is_empty() { format!("{} #{}", info.operator, info.index) } else { info.name.into() };
        let args = Args {
            index: Some(info.index),
            version: Some(info.version),
            function: info.function.map(str::to_string),
            inputs,
            outputs: outputs.iter().map(|(name, value)| (name.to_string(), described(value))).collect(),
            macs: Some(macs),
            bytes: Some(bytes),
        };
        let (ts, dur) = (microseconds(start.saturating_duration_since(self.started)), microseconds(end - start));
        self.events.push(Event { ts, dur, args, ..Event::new(name, info.operator) });
    }

    /// The run has ended.
    pub(super) fn end(&mut self) {
        self.time = self.started.elapsed();
    }

    /// The content of the file.
    pub(super) fn document(mut self, model: &str) -> impl Serialize + use<> {
        let run = Event { dur: microseconds(self.time), ..Event::new(model.to_string(), "run") };
        self.events.push(run);
        // Viewers nest events in the order of their starts; of several, the longest first.
        self.events.sort_by(|a, b| a.ts.total_cmp(&b.ts).then(b.dur.total_cmp(&a.dur)));
        Document { events: self.events, unit: "ms" }
    }
}

#[derive(Serialize)]
struct Document {
    #[serde(rename = "traceEvents")]
    events: Vec<Event>,
    #[serde(rename = "displayTimeUnit")]
    unit: &'static str,
}

impl Event {
    fn new(name: String, category: &str) -> Event {
        Event { name, cat: category.into(), ph: "X", ts: 0.0, dur: 0.0, pid: 1, tid: 1, args: Args::default() }
    }
}

fn microseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// The type and shape of a value: `float32 [2, 3]`.
fn described(value: &Value) -> String {
    let name = value.value_type().map_or_else(|| "?".to_string(), |value_type| type_name(&value_type));
    value.tensor().map_or(name.clone(), |tensor| format!("{name} {:?}", tensor.shape()))
}
