//! Official test cases: a model, inputs and expected outputs.
//!
//! A case is a folder with `model.onnx` (or `model.xml`, an OpenVINO IR) and data sets `test_data_set_0`,
//! `test_data_set_1`, .. of `input_0.pb`, .., `output_0.pb`, ..: encoded `TensorProto`s, `SequenceProto`s or
//! `OptionalProto`s in the order of the model's inputs and outputs. Outputs are compared by the official rule, which [`Tolerance`] states. No Python is needed.
//!
//! A case that must be refused has `expected_error.json` in the place of outputs: it passes if loading the model or running
//! it fails, by an error of [`Kind::Model`] or [`Kind::Input`].
//!
//! ONNX's light models have another layout: `NAME.onnx` beside `NAME_output_0.pb`, .., without inputs. As in the official
//! runner, each input that has no initializer is then the float tensor of its declared shape whose `n` elements are
//! `0/n, 1/n, ..`; a dimension of unknown size is 1.
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

mod compare;
mod difference;
mod engine;

pub use compare::Tolerance;
pub use difference::{Difference, DifferenceKind};
use engine::Declared;
pub use engine::Task;

/// Where engines depart from the standard's text, and where it is silent: the table `docs/differences.md`, in Markdown.
///
/// A row has the operators, by their names or as `Random*`, the versions, what the text says, what onnxruntime, the
/// reference implementation in Python and onnxref do, and the models that show it, by their names in the repository's
/// archive `onnx-test-data/differences.tar.xz`.
pub const DIFFERENCES: &str = include_str!("../../docs/differences.md");

use crate::dtype::DType;
use crate::error::{Error, Kind, Result, quote};
use crate::graph::ValueInfo;
use crate::model::{Inputs, Inspection, LoadOptions, Model};
use crate::operator::Cancel;
use crate::tensor::Tensor;
use crate::value::{Dim, Value, ValueType};
use bytes::Bytes;
use compare::Agreement;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

/// A test case.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Case {
    /// The folder's path, below the one that was searched; `/` between its parts. A light model's path without `.onnx`.
    pub name: String,
    /// The tolerance for its floats.
    pub tolerance: Tolerance,
    model: Source,
    sets: BTreeMap<String, DataSet>,
}

/// A file of a case.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Source {
    /// Its path.
    Path(PathBuf),
    /// Its content, such as that of a file in an archive.
    Bytes(Bytes),
}

/// The files of a data set by number.
#[derive(Debug, Clone, Default)]
struct DataSet {
    inputs: BTreeMap<usize, Source>,
    outputs: BTreeMap<usize, Source>,
    /// The file that says how the case must be refused, in the place of outputs.
    error: Option<Source>,
    /// The inputs are computed: a light model has none.
    light: bool,
}

/// The result of a case.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Every output of every data set agrees with the expected one, by the rule of [`Tolerance`]; or the case must be
    /// refused, and is.
    #[non_exhaustive]
    Passed {
        /// All are equal bit by bit.
        exact: bool,
        /// The greatest distance of a finite float of 16 bits or more, in units in the last place.
        ulps: u64,
    },
    /// The model can't run here, and nothing else is wrong; [`Error::causes`] has the reasons.
    Unsupported(Error),
    /// The model is refused because a node departs from the standard: for example, its opset doesn't have the operator.
    Refused(Error),
    /// An output is wrong, or the case can't be run.
    Failed(Failure),
}

/// Why a case failed; displays as one line.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The data set, such as `test_data_set_0`; `None` if no data set was run.
    pub data_set: Option<String>,
    /// The name of the wrong output.
    pub output: Option<String>,
    /// How the output differs.
    pub difference: Option<Box<Difference>>,
    /// The error of loading or running the model.
    pub error: Option<Error>,
    /// The text, without the data set.
    text: String,
}

impl Case {
    /// The cases in a folder and its subfolders, by name. Links are not followed.
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
        // If the folder itself is a case, the case has the folder's name.
        for case in cases.iter_mut().filter(|case| case.name.is_empty()) {
            case.name = root.file_name().map_or(".".into(), |name| name.to_string_lossy().into_owned());
        }
        Ok(cases)
    }

    /// The cases among files, such as those of an archive: the path of each, with `/` between its parts, and content.
    pub fn from_files(files: impl IntoIterator<Item = (String, Bytes)>) -> Vec<Case> {
        collect(files.into_iter().map(|(path, bytes)| (path, Source::Bytes(bytes))))
    }

    /// Runs the case and compares its outputs.
    pub fn run(&self) -> Outcome {
        self.run_with(&Model::options())
    }

    /// As [`Case::run`], with a model that is loaded with options.
    pub fn run_with(&self, options: &LoadOptions) -> Outcome {
        self.run_until(options, &Cancel::new())
    }

    /// As [`Case::run_with`]; fails once `cancel` is called or its time is up.
    pub fn run_until(&self, options: &LoadOptions, cancel: &Cancel) -> Outcome {
        let model = match self.load(options) {
            Ok(model) => model,
            Err(error) if self.must_fail() && refuses(&error) => return Outcome::Passed { exact: true, ulps: 0 },
            Err(error) => return not_loaded(error),
        };
        self.each_set(|set| set.run(&model, self.tolerance, cancel))
    }

    /// Runs the data sets, up to the first that fails.
    fn each_set(&self, mut run: impl FnMut(&DataSet) -> Result<Agreement, Failure>) -> Outcome {
        if self.sets.is_empty() {
            return Outcome::Failed("the case has no data set".to_string().into());
        }
        let mut all = Agreement::EXACT;
        for (name, set) in &self.sets {
            match run(set) {
                Ok(agreement) => all = all.and(agreement),
                Err(why) => return Outcome::Failed(Failure { data_set: Some(name.clone()), ..why }),
            }
        }
        Outcome::Passed { exact: all.exact, ulps: all.ulps }
    }

    /// What the model holds, also of a model that can't run.
    ///
    /// # Errors
    /// The file can't be read, or is not a model.
    pub fn inspect(&self, options: &LoadOptions) -> Result<Inspection> {
        match &self.model {
            Source::Path(path) => options.inspect(path),
            Source::Bytes(bytes) => options.inspect_bytes(bytes.clone()),
        }
    }

    /// Whether the case must be refused: see [the module](crate::conformance).
    pub fn must_fail(&self) -> bool {
        self.sets.values().any(|set| set.error.is_some())
    }

    /// The operators that the model names, also of a model that can't run: those of its nodes, with functions and
    /// subgraphs. Each has a domain, empty for `ai.onnx`, and a name.
    ///
    /// # Errors
    /// The file can't be read, or is not a model.
    pub fn operators(&self, options: &LoadOptions) -> Result<BTreeSet<(String, String)>> {
        let graph = self.inspect(options)?.graph;
        Ok(graph.all_nodes().map(|node| (node.domain.clone(), node.operator.clone())).collect())
    }

    /// The files of the case, sorted by their paths below its folder: `model.onnx`, `test_data_set_0/input_0.pb`, .. Of a
    /// case in a folder also the other files beside the model, such as external data. A light model has the same layout, with
    /// the inputs that the runner makes.
    ///
    /// ```
    /// use onnxref::conformance::Case;
    ///
    /// let cases = Case::find("onnx-test-data/gather/onnx-1.12.0/node/test_gather_0")?;
    /// let paths: Vec<String> = cases[0].files()?.into_iter().map(|(path, _)| path).collect();
    /// let set = ["input_0.pb", "input_1.pb", "output_0.pb"].map(|file| format!("test_data_set_0/{file}"));
    /// assert_eq!(paths[0], "model.onnx");
    /// assert_eq!(paths[1..], set);
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    ///
    /// # Errors
    /// A file can't be read. The model of a light case is no model, or has inputs that the runner doesn't make.
    pub fn files(&self) -> Result<Vec<(String, Bytes)>> {
        let mut files = self.model.beside()?;
        for (name, set) in &self.sets {
            let all =
                set.inputs.iter().map(|file| ("input", file)).chain(set.outputs.iter().map(|file| ("output", file)));
            for (kind, (k, source)) in all {
                files.push((format!("{name}/{kind}_{k}.pb"), source.bytes()?));
            }
            if let Some(source) = &set.error {
                files.push((format!("{name}/{EXPECTED_ERROR}"), source.bytes()?));
            }
            if set.light {
                let found = self.inspect(&Model::options())?;
                for (k, bytes) in Declared(Some(&found.graph)).light_inputs().map_err(Error::input)? {
                    files.push((format!("{name}/input_{k}.pb"), bytes.into()));
                }
            }
        }
        files.sort();
        Ok(files)
    }

    fn load(&self, options: &LoadOptions) -> Result<Model> {
        match &self.model {
            Source::Path(path) => options.load(path),
            Source::Bytes(bytes) => options.from_bytes(bytes.clone()),
        }
    }
}

/// Whether an error says that the model or what is fed to it is at fault.
fn refuses(error: &Error) -> bool {
    error.causes().iter().all(|cause| matches!(cause.kind(), Kind::Model | Kind::Input))
}

fn not_loaded(error: Error) -> Outcome {
    let unsupported = |e: &Error| e.kind() == Kind::Unsupported;
    let refused = |e: &Error| e.kind() == Kind::Model && e.place().node_index.is_some();
    if error.causes().iter().all(unsupported) {
        Outcome::Unsupported(error)
    } else if error.causes().iter().all(|e| unsupported(e) || refused(e)) {
        Outcome::Refused(error)
    } else {
        Outcome::Failed(error.into())
    }
}

impl Failure {
    fn of_output(name: &str, difference: Difference) -> Failure {
        let (output, difference) = (Some(name.to_string()), Some(difference.into()));
        Failure { output, difference, ..Failure::from(String::new()) }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure { data_set: None, output: None, difference: None, error: None, text }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error: Some(error), ..Failure::from(String::new()) }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.data_set.as_ref().map_or(Ok(()), |name| write!(f, "{name}: "))?;
        match (&self.difference, &self.error) {
            (Some(difference), _) => {
                write!(f, "output {} {difference}", quote(self.output.as_deref().unwrap_or_default()))
            }
            (None, Some(error)) => write!(f, "{error:#}"),
            (None, None) => f.write_str(&self.text),
        }
    }
}

/// Models and their data sets, by the case's path.
type Found = BTreeMap<String, (Option<Source>, BTreeMap<String, DataSet>)>;

/// The official runner's name for the data set of a light model.
const LIGHT_SET: &str = "test_data_set_0";

/// What is wrong with a case that must be refused, and isn't.
const NOT_REFUSED: &str = "it must be refused, but it runs";

/// The name of the file that says how a case must be refused.
const EXPECTED_ERROR: &str = "expected_error.json";

/// Groups files by case: a folder with a model, or a light model.
fn collect(files: impl IntoIterator<Item = (String, Source)>) -> Vec<Case> {
    let (mut cases, mut light) = (Found::new(), Found::new());
    for (path, source) in files {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
        let (case, set) = folder.rsplit_once('/').unwrap_or(("", folder));
        if file == "model.onnx" || file == "model.xml" {
            cases.entry(folder.to_string()).or_default().0 = Some(source);
        } else if let Some(name) = path.strip_suffix(".onnx") {
            light.entry(name.to_string()).or_default().0 = Some(source);
        } else if set.starts_with("test_data_set_") {
            let set = cases.entry(case.to_string()).or_default().1.entry(set.to_string()).or_default();
            if file == EXPECTED_ERROR {
                set.error = Some(source);
                continue;
            }
            match numbered(file) {
                Some(("input", number)) => set.inputs.insert(number, source),
                Some(("output", number)) => set.outputs.insert(number, source),
                _ => None,
            };
        } else if let Some((name, number)) = numbered(&path)
            && let Some(name) = name.strip_suffix("_output")
        {
            let set = light.entry(name.to_string()).or_default().1.entry(LIGHT_SET.to_string()).or_default();
            set.light = true;
            set.outputs.insert(number, source);
        }
    }
    // Any other model without outputs is not a case.
    light.retain(|_, (_, sets)| !sets.is_empty());
    let case = |(name, (model, sets)): (String, (Option<Source>, _))| {
        let name = name.trim_start_matches('/').to_string();
        let mut tolerance = Tolerance::default();
        if name.ends_with("light_densenet121") {
            // `real/test_densenet121/data.json` of the onnx package says so; no other case departs from the defaults.
            tolerance.rtol = 2e-3;
        }
        Some(Case { name, tolerance, model: model?, sets })
    };
    let mut cases: Vec<Case> = cases.into_iter().chain(light).filter_map(case).collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// `NAME` and `K` of `NAME_K.pb`.
fn numbered(path: &str) -> Option<(&str, usize)> {
    let (name, number) = path.strip_suffix(".pb")?.rsplit_once('_')?;
    Some((name, number.parse().ok()?))
}

impl Source {
    fn bytes(&self) -> Result<Bytes> {
        match self {
            Source::Bytes(bytes) => Ok(bytes.clone()),
            Source::Path(path) => read(path),
        }
    }

    /// A model, and the files that are beside it if it has a folder of its own.
    fn beside(&self) -> Result<Vec<(String, Bytes)>> {
        let (Source::Path(path), Some(folder)) = (self, self.folder()) else {
            return Ok(vec![("model.onnx".to_string(), self.bytes()?)]);
        };
        let failed = |e| Error::io(format!("folder {}", quote(&folder.to_string_lossy())), e);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_file() || entry.path() == *path {
                files.push((entry.file_name().to_string_lossy().into_owned(), read(&entry.path())?));
            }
        }
        Ok(files)
    }

    /// The folder that a model has for itself.
    fn folder(&self) -> Option<&Path> {
        let Source::Path(path) = self else { return None };
        let own = path.file_name().is_some_and(|name| name == "model.onnx" || name == "model.xml");
        path.parent().filter(|_| own)
    }

    /// The value in a file.
    fn value(&self, declared: Option<&ValueType>) -> Result<Value, String> {
        let bytes = self.bytes().map_err(|e| format!("{e:#}"))?;
        Ok(match decoded(bytes, declared)? {
            // Up to version 1.18 the official cases hold bfloat16 as uint16 of the same bits.
            Value::Tensor(tensor) if tensor.dtype() == DType::Uint16 && declared == Some(&DType::Bfloat16.into()) => {
                tensor.retyped(DType::Bfloat16).into()
            }
            value => value,
        })
    }
}

/// An encoded value: a tensor, unless something else is declared.
fn decoded(bytes: Bytes, declared: Option<&ValueType>) -> Result<Value, String> {
    let value = match declared {
        None | Some(ValueType::Tensor(_)) => Tensor::from_proto_bytes(bytes).map(Value::Tensor),
        Some(declared) => Value::from_proto_bytes(bytes, declared),
    };
    value.map_err(|e| format!("{e:#}"))
}

impl DataSet {
    /// How the outputs agree, or else why one is wrong.
    fn run(&self, model: &Model, tolerance: Tolerance, cancel: &Cancel) -> Result<Agreement, Failure> {
        let inputs = if self.light { light_inputs(model)? } else { self.inputs(model)? };
        let outputs = match model.run_with(inputs, cancel) {
            Err(error) if self.error.is_some() && refuses(&error) => return Ok(Agreement::EXACT),
            outputs => outputs?,
        };
        if self.error.is_some() {
            return Err(NOT_REFUSED.to_string().into());
        }
        let got: Vec<(&str, &Value)> = outputs.iter().collect();
        if self.outputs.is_empty() {
            return Err("it has no outputs to compare".to_string().into());
        }
        if self.outputs.len() != got.len() {
            return Err(format!("it has {} outputs, but the model gives {}", self.outputs.len(), got.len()).into());
        }
        let mut all = Agreement::EXACT;
        for ((k, source), (name, got)) in self.outputs.iter().zip(got) {
            let want = source.value(got.value_type().as_ref()).map_err(|why| format!("output_{k}.pb: {why}"))?;
            all = all.and(tolerance.agree(got, &want).map_err(|difference| Failure::of_output(name, difference))?);
        }
        Ok(all)
    }

    fn inputs<'a>(&self, model: &'a Model) -> Result<Inputs<'a>, String> {
        let infos: Vec<&ValueInfo> = model.inputs().collect();
        let mut inputs = Inputs::new();
        for (k, source) in &self.inputs {
            let info = infos.get(*k).ok_or_else(|| format!("input_{k}.pb: the model has {} inputs", infos.len()))?;
            let value = source.value(info.value_type.as_ref()).map_err(|why| format!("input_{k}.pb: {why}"))?;
            inputs = inputs.with(&info.name, value);
        }
        Ok(inputs)
    }
}

fn read(path: &Path) -> Result<Bytes> {
    let bytes = std::fs::read(path).map_err(|e| Error::io(format!("file {}", quote(&path.to_string_lossy())), e))?;
    Ok(bytes.into())
}

/// What the official runner feeds light models.
fn light_inputs(model: &Model) -> Result<Inputs<'_>, String> {
    let mut inputs = Inputs::new();
    for info in model.inputs().filter(|info| !model.has_default(&info.name)) {
        let tensor = ramp(info).map_err(|why| format!("input {} {why}", quote(&info.name)))?;
        inputs = inputs.with(&info.name, tensor);
    }
    Ok(inputs)
}

/// The largest input of a light model has 150,528 elements.
const MAX_RAMP: usize = 1 << 24;

fn ramp(info: &ValueInfo) -> Result<Tensor, String> {
    let (Some(DType::Float), Some(dims)) = (info.dtype(), &info.shape) else {
        return Err("has no file, and is not a float tensor of declared rank".to_string());
    };
    let size = |dim: &Dim| if let Dim::Fixed(size) = dim { *size } else { 1 };
    let shape: Vec<usize> = dims.iter().map(size).collect();
    let len = shape.iter().try_fold(1usize, |len, dim| len.checked_mul(*dim)).filter(|len| *len <= MAX_RAMP);
    let len = len.ok_or_else(|| format!("has no file, and more than {MAX_RAMP} elements"))?;
    let elements: Vec<f32> = (0..len).map(|k| (k as f64 / len as f64) as f32).collect();
    Ok(Tensor::from_words(DType::Float, &shape, elements))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn files_become_cases() {
        let file = |path: &str| (path.to_string(), Bytes::new());
        let cases = Case::from_files(
            ["a/model.onnx", "a/test_data_set_0/input_0.pb", "a/x.txt", "b/test_data_set_0/input_0.pb"].map(file),
        );
        assert_eq!(cases.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a"]);
        assert!(matches!(cases[0].run(), Outcome::Failed(why) if why.to_string() == "the model file is empty"));
    }

    #[test]
    fn some_cases_must_be_refused() {
        let folder = "onnx-test-data/gather/onnx-1.12.0/node/test_gather_0";
        let mut files = Case::find(folder).unwrap()[0].files().unwrap();
        files.retain(|(path, _)| !path.contains("output"));
        files.push(("test_data_set_0/expected_error.json".to_string(), Bytes::from("{}")));
        let at = |files: &[(String, Bytes)]| {
            Case::from_files(files.iter().map(|(path, bytes)| (format!("case/{path}"), bytes.clone())))
        };
        let text = |case: &Case| match case.run() {
            Outcome::Failed(why) => why.to_string(),
            other => format!("{other:?}"),
        };
        let runs = &at(&files)[0];
        assert_eq!(runs.files().unwrap().len(), 4);
        assert!(runs.must_fail());
        assert_eq!(text(runs), "test_data_set_0: it must be refused, but it runs");
        // Indices out of range, and a model that can't be loaded.
        let index = files.iter().position(|(path, _)| path.ends_with("input_1.pb")).unwrap();
        files[index].1 = Tensor::from(vec![1i64 << 20; 3]).to_proto_bytes("indices").into();
        assert_eq!(text(&at(&files)[0]), "Passed { exact: true, ulps: 0 }");
        let model = files.iter().position(|(path, _)| path == "model.onnx").unwrap();
        files[model].1 = Bytes::from_static(b"\x08\x08");
        assert_eq!(text(&at(&files)[0]), "Passed { exact: true, ulps: 0 }");
        // Without the file, it fails as before.
        files.retain(|(path, _)| !path.ends_with("json"));
        assert!(!at(&files)[0].must_fail());
        assert_ne!(text(&at(&files)[0]), "Passed { exact: true, ulps: 0 }");
    }

    fn networks() -> Vec<Case> {
        archive("small-networks")
    }

    fn archive(name: &str) -> Vec<Case> {
        let file = std::fs::File::open(format!("onnx-test-data/{name}.tar.xz")).unwrap();
        let mut archive = tar::Archive::new(lzma_rust2::XzReader::new(std::io::BufReader::new(file), false));
        let files = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            (entry.path().unwrap().to_string_lossy().into_owned(), bytes.into())
        });
        Case::from_files(files)
    }

    /// Compares each value of a run with what was known about it before.
    struct Holds<'a> {
        values: std::collections::HashMap<&'a str, &'a crate::graph::ValueDetails>,
        depth: usize,
        known: usize,
    }

    impl crate::graph::Watch for Holds<'_> {
        fn starts(&mut self, _: crate::graph::NodeInfo<'_>, _: &[Option<&Value>]) -> Result<()> {
            self.depth += 1;
            Ok(())
        }

        fn ends(&mut self, node: crate::graph::NodeInfo<'_>, outputs: &[(&str, &Value)]) -> Result<()> {
            self.depth -= 1;
            let Some(inferred) = outputs.first().filter(|_| self.depth == 0 && node.function.is_none()) else {
                return Ok(());
            };
            let details = self.values[inferred.0];
            assert!(details.value_type.as_ref().is_none_or(|of| inferred.1.is_of(of)), "{node:?}");
            if let (Some(dims), Ok(tensor)) = (&details.shape, inferred.1.tensor()) {
                let fits = |(dim, size): (&Dim, &usize)| !matches!(dim, Dim::Fixed(fixed) if fixed != size);
                let same = dims.len() == tensor.rank() && dims.iter().zip(tensor.shape()).all(fits);
                assert!(same, "{node:?} gives {:?}, not {dims:?}", tensor.shape());
                self.known += 1;
            }
            Ok(())
        }
    }

    /// Types and shapes that are inferred at load are those of the run: official cases and networks, node by node.
    #[test]
    #[cfg_attr(miri, ignore = "takes hours")]
    fn what_is_inferred_holds() {
        let (mut known, options) = (0, Model::options().optimize(false));
        for case in archive("onnx-1.23.2-node").iter().chain(&networks()) {
            let Source::Bytes(bytes) = &case.model else { continue };
            let Ok(model) = options.from_bytes(bytes.clone()) else { continue };
            let found = options.inspect_bytes(bytes.clone()).unwrap();
            let values = found.graph.values.iter().map(|value| (value.name.as_str(), value)).collect();
            let mut holds = Holds { values, depth: 0, known: 0 };
            for set in case.sets.values() {
                let inputs = set.inputs(&model).unwrap();
                model.run_watched(inputs, &crate::operator::Cancel::new(), &mut holds).unwrap();
            }
            known += holds.known;
        }
        assert!(known > 2000, "{known}");
    }

    #[test]
    fn light_models_have_their_outputs_beside_them() {
        let paths =
            ["x/m.onnx", "x/m_output_0.pb", "x/m_output_1.pb", "x/n.onnx", "x/o_output_0.pb", "x/m_output_a.pb"];
        let cases = Case::from_files(paths.map(|path| (path.to_string(), Bytes::new())));
        assert_eq!(cases.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["x/m"]);
        assert_eq!(cases[0].sets[LIGHT_SET].outputs.len(), 2);
    }

    #[test]
    fn light_inputs_rise_from_zero() {
        let info =
            |dims: Vec<Dim>| ValueInfo { name: "x".into(), value_type: Some(DType::Float.into()), shape: Some(dims) };
        let tensor = ramp(&info(vec![Dim::Unknown, Dim::Fixed(3), Dim::Symbol("N".into())])).unwrap();
        assert_eq!(tensor, ndarray::array![[[0f32], [1.0 / 3.0], [2.0 / 3.0]]].into());
        assert_eq!(ramp(&info(vec![Dim::Fixed(0)])).unwrap().len(), 0);
        let error = ramp(&info(vec![Dim::Fixed(usize::MAX), Dim::Fixed(2)])).unwrap_err();
        assert_eq!(error, "has no file, and more than 16777216 elements");
        assert!(ramp(&ValueInfo { value_type: Some(DType::Int64.into()), ..info(vec![]) }).is_err());
    }
}
