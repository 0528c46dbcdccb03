//! Official test cases: a model, inputs, and the outputs that the standard wants.
//!
//! A case is a folder with `model.onnx` (or `model.xml`, an OpenVINO IR) and data sets `test_data_set_0`, `test_data_set_1`, .. of `input_0.pb`, ..,
//! `output_0.pb`, ..: encoded `TensorProto`s in the order of the model's inputs and outputs. No Python is needed.
//!
//! ```no_run
//! use onnxref::conformance::{Case, Outcome};
//!
//! for case in Case::find("onnx-test-data/gather")? {
//!     if let Outcome::Failed(why) = case.run() {
//!         println!("{}: {why}", case.name);
//!     }
//! }
//! # Ok::<(), onnxref::Error>(())
//! ```

use crate::error::{Error, Kind, Result, quote};
use crate::model::{Inputs, Model};
use crate::tensor::{Tensor, position_of};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A test case.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Case {
    /// The folder's path, below the one that was searched; `/` between its parts.
    pub name: String,
    model: Source,
    sets: BTreeMap<String, DataSet>,
}

#[derive(Debug, Clone)]
enum Source {
    Path(PathBuf),
    Bytes(Bytes),
}

/// The files of a data set by number.
#[derive(Debug, Clone, Default)]
struct DataSet {
    inputs: BTreeMap<usize, Source>,
    outputs: BTreeMap<usize, Source>,
}

/// What came of a case.
#[derive(Debug)]
pub enum Outcome {
    /// Every output of every data set has the type, the shape and the bits that it should have.
    Passed,
    /// The model can't run here, for these reasons alone; see [`Error::causes`].
    Unsupported(Error),
    /// An output is wrong, or the case can't be run.
    Failed(String),
}

impl Case {
    /// The cases in a folder and those below it, by name. Links are not followed.
    ///
    /// # Errors
    /// A folder can't be read.
    pub fn find(folder: impl AsRef<Path>) -> Result<Vec<Case>> {
        let root = folder.as_ref();
        let mut files = Vec::new();
        let mut open = vec![(root.to_path_buf(), String::new())];
        while let Some((path, name)) = open.pop() {
            let failed = |e| Error::io(format!("folder {}", quote(&path.to_string_lossy())), e);
            for entry in std::fs::read_dir(&path).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let kind = entry.file_type().map_err(failed)?;
                let below = format!("{name}/{}", entry.file_name().to_string_lossy());
                if kind.is_dir() {
                    open.push((entry.path(), below));
                } else if kind.is_file() {
                    files.push((below, Source::Path(entry.path())));
                }
            }
        }
        let mut cases = collect(files);
        // A case that is the folder itself is called like it.
        for case in cases.iter_mut().filter(|case| case.name.is_empty()) {
            case.name = root.file_name().map_or(".".into(), |name| name.to_string_lossy().into_owned());
        }
        Ok(cases)
    }

    /// The cases among files, such as those of an archive: the path of each, with `/` between its parts, and content.
    pub fn from_files(files: impl IntoIterator<Item = (String, Bytes)>) -> Vec<Case> {
        collect(files.into_iter().map(|(path, bytes)| (path, Source::Bytes(bytes))))
    }

    /// Runs the case and compares bit by bit.
    pub fn run(&self) -> Outcome {
        let model = match &self.model {
            Source::Path(path) => Model::load(path),
            Source::Bytes(bytes) => Model::from_bytes(bytes.clone()),
        };
        let model = match model {
            Ok(model) => model,
            Err(error) if error.causes().iter().all(|e| e.kind() == Kind::Unsupported) => {
                return Outcome::Unsupported(error);
            }
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        if self.sets.is_empty() {
            return Outcome::Failed("the case has no data set".to_string());
        }
        for (name, set) in &self.sets {
            if let Err(why) = set.run(&model) {
                return Outcome::Failed(format!("{name}: {why}"));
            }
        }
        Outcome::Passed
    }
}

/// Groups files by case: a folder with a model.
fn collect(files: impl IntoIterator<Item = (String, Source)>) -> Vec<Case> {
    let mut cases: BTreeMap<String, (Option<Source>, BTreeMap<String, DataSet>)> = BTreeMap::new();
    for (path, source) in files {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
        if file == "model.onnx" || file == "model.xml" {
            cases.entry(folder.to_string()).or_default().0 = Some(source);
            continue;
        }
        let (case, set) = folder.rsplit_once('/').unwrap_or(("", folder));
        let number = |prefix| file.strip_prefix(prefix)?.strip_suffix(".pb")?.parse().ok();
        if !set.starts_with("test_data_set_") {
            continue;
        }
        let set = cases.entry(case.to_string()).or_default().1.entry(set.to_string()).or_default();
        if let Some(number) = number("input_") {
            set.inputs.insert(number, source);
        } else if let Some(number) = number("output_") {
            set.outputs.insert(number, source);
        }
    }
    let case = |(name, (model, sets)): (String, (Option<Source>, _))| {
        Some(Case { name: name.trim_start_matches('/').to_string(), model: model?, sets })
    };
    cases.into_iter().filter_map(case).collect()
}

impl Source {
    fn tensor(&self) -> Result<Tensor, String> {
        let bytes = match self {
            Source::Bytes(bytes) => bytes.clone(),
            Source::Path(path) => std::fs::read(path).map_err(|e| e.to_string())?.into(),
        };
        Tensor::from_proto_bytes(bytes).map_err(|e| e.to_string())
    }
}

impl DataSet {
    fn run(&self, model: &Model) -> Result<(), String> {
        let names: Vec<&str> = model.inputs().map(|info| info.name.as_str()).collect();
        let mut inputs = Inputs::new();
        for (k, source) in &self.inputs {
            let tensor = source.tensor().map_err(|why| format!("input_{k}.pb: {why}"))?;
            let name = names.get(*k).ok_or_else(|| format!("input_{k}.pb: the model has {} inputs", names.len()))?;
            inputs = inputs.with(name, tensor);
        }
        let outputs = model.run(inputs).map_err(|e| e.to_string())?;
        let got: Vec<(&str, &Tensor)> = outputs.iter().collect();
        if self.outputs.is_empty() {
            return Err("it has no outputs to compare".to_string());
        }
        if self.outputs.len() != got.len() {
            return Err(format!("it has {} outputs, and the model gives {}", self.outputs.len(), got.len()));
        }
        for ((k, source), (name, got)) in self.outputs.iter().zip(got) {
            let want = source.tensor().map_err(|why| format!("output_{k}.pb: {why}"))?;
            compare(got, &want).map_err(|why| format!("output {} {why}", quote(name)))?;
        }
        Ok(())
    }
}

/// Says how a tensor differs from the one that is wanted, bit by bit.
fn compare(got: &Tensor, want: &Tensor) -> Result<(), String> {
    if got == want {
        return Ok(());
    }
    if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
        let shape = |tensor: &Tensor| format!("{}{:?}", tensor.dtype(), tensor.shape());
        return Err(format!("is {}, and should be {}", shape(got), shape(want)));
    }
    let pairs = || got.scalars().zip(want.scalars()).enumerate();
    let first = pairs().find(|(_, (got, want))| got != want).or_else(|| pairs().next());
    let differ = pairs().filter(|(_, (got, want))| got != want).count().max(1);
    Err(match first {
        Some((at, (g, w))) => {
            format!("is {g} at {:?}, and should be {w}; {differ} of {} differ", position_of(at, got.shape()), got.len())
        }
        None => "differs".to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn differences_are_named() {
        let want = Tensor::from_array(array![[1i32, 2], [3, 4]]);
        let compare = |got| compare(&got, &want).unwrap_err();
        assert_eq!(compare(array![[1i32, 2], [5, 6]].into()), "is 5 at [1, 0], and should be 3; 2 of 4 differ");
        assert_eq!(compare(array![1i32].into()), "is int32[1], and should be int32[2, 2]");
        assert_eq!(compare(array![[1u32, 2], [3, 4]].into()), "is uint32[2, 2], and should be int32[2, 2]");
    }

    #[test]
    fn files_become_cases() {
        let file = |path: &str| (path.to_string(), Bytes::new());
        let cases = Case::from_files(
            ["a/model.onnx", "a/test_data_set_0/input_0.pb", "a/x.txt", "b/test_data_set_0/input_0.pb"].map(file),
        );
        assert_eq!(cases.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a"]);
        assert!(matches!(cases[0].run(), Outcome::Failed(why) if why == "the model file is empty"));
    }
}
