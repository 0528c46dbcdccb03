//! The figures, as `--json` and `--save` write them. Times are in seconds.

use serde::{Deserialize, Serialize};

/// Figures of a model.
#[derive(Default, Serialize)]
pub(super) struct Report {
    pub(super) model: String,
    pub(super) onnxref: &'static str,
    pub(super) threads: usize,
    pub(super) load_seconds: f64,
    pub(super) first_run_seconds: f64,
    pub(super) warmup_runs: usize,
    pub(super) runs: Runs,
    /// Most memory of the program until the measured runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peak_memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<Profiled>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) operators: Vec<OperatorFigures>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) nodes: Vec<NodeFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) machine: Option<Machine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) against: Option<Comparison>,
}

/// The number of measured runs, and their times.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Runs {
    pub(super) count: usize,
    pub(super) min: f64,
    pub(super) mean: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// The runs that were watched node by node.
#[derive(Serialize)]
pub(super) struct Profiled {
    pub(super) runs: u64,
    pub(super) mean: f64,
}

/// Figures of one run.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Figures {
    pub(super) calls: u64,
    /// With the nodes of subgraphs.
    pub(super) seconds: f64,
    /// Without them.
    pub(super) own_seconds: f64,
    /// The part of all nodes' own time.
    pub(super) share: f64,
    pub(super) macs: u64,
    /// Sizes of inputs and outputs.
    pub(super) bytes: u64,
}

#[derive(Serialize)]
pub(super) struct OperatorFigures {
    pub(super) operator: String,
    pub(super) domain: String,
    #[serde(flatten)]
    pub(super) figures: Figures,
}

#[derive(Serialize)]
pub(super) struct NodeFigures {
    pub(super) name: String,
    /// Its position in its graph.
    pub(super) index: usize,
    pub(super) operator: String,
    pub(super) domain: String,
    pub(super) version: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function: Option<String>,
    /// The node with the subgraph that it is in, by position in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<usize>,
    #[serde(flatten)]
    pub(super) figures: Figures,
}

/// The machine's limits.
#[derive(Serialize)]
pub(super) struct Machine {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) processor: Option<String>,
    /// Read and written by a copy.
    pub(super) copy_bytes_per_second: f64,
    pub(super) copy_bytes: usize,
    /// Of the library's product of two square matrices of float32.
    pub(super) macs_per_second: f64,
    pub(super) matrix_size: usize,
}

/// Times before and after.
#[derive(Serialize)]
pub(super) struct Comparison {
    pub(super) file: String,
    pub(super) runs: Vec<Pair>,
    /// Own times of operators, if both have a profile.
    pub(super) operators: Vec<Pair>,
}

#[derive(Serialize)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) before: Option<f64>,
    pub(super) after: Option<f64>,
    /// `after` divided by `before`.
    pub(super) ratio: Option<f64>,
}

impl Runs {
    pub(super) fn new(mut seconds: Vec<f64>) -> Runs {
        seconds.sort_by(f64::total_cmp);
        let [min, p50, p90, p99, max] = [0.0, 0.5, 0.9, 0.99, 1.0].map(|q| quantile(&seconds, q));
        let mean = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
        Runs { count: seconds.len(), min, mean, p50, p90, p99, max }
    }

    /// The times by name.
    pub(super) fn named(&self) -> [(&'static str, f64); 6] {
        let Runs { min, mean, p50, p90, p99, max, .. } = *self;
        [("min", min), ("mean", mean), ("p50", p50), ("p90", p90), ("p99", p99), ("max", max)]
    }
}

impl Figures {
    pub(super) fn add(&mut self, other: &Figures) {
        self.calls += other.calls;
        self.seconds += other.seconds;
        self.own_seconds += other.own_seconds;
        self.share += other.share;
        self.macs = self.macs.saturating_add(other.macs);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Multiply-accumulates in a second.
    pub(super) fn macs_rate(&self) -> f64 {
        if self.own_seconds > 0.0 { self.macs as f64 / self.own_seconds } else { 0.0 }
    }

    /// Bytes in a second.
    pub(super) fn bytes_rate(&self) -> f64 {
        if self.own_seconds > 0.0 { self.bytes as f64 / self.own_seconds } else { 0.0 }
    }
}

/// The value at a quantile of sorted values, by nearest rank: at least the part `q` of all values is not greater.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).or(sorted.last()).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_nearest_rank() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!([0.5, 0.9, 0.99, 1.0].map(|q| quantile(&values, q)), [100.0, 180.0, 198.0, 200.0]);
        assert_eq!([0.0, 0.5, 0.99].map(|q| quantile(&[7.0], q)), [7.0; 3]);
        assert_eq!(quantile(&[1.0, 2.0], 0.5), 1.0);
    }

    #[test]
    fn times_of_runs() {
        let runs = Runs::new(vec![4.0, 1.0, 2.0, 3.0]);
        assert_eq!(runs.count, 4);
        assert_eq!(runs.named().map(|(_, seconds)| seconds), [1.0, 2.5, 2.0, 4.0, 4.0, 4.0]);
    }
}
