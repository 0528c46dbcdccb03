//! The model's feeds: `-i NAME=VALUE`, the files of `--inputs`, and random values.

use crate::bounded::Unwritten;
use crate::failure::Failure;
use crate::image::Pictures;
use crate::random::{Random, Range};
use crate::value::{Named, Wanted, split, value};
use crate::{floats, npz, output, print};
use clap::Args;
use onnxref::{Cancel, Dim, Model, Value, ValueInfo, quote};
use onnxref_view::{counted, dtype_name, type_name};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// What to feed: the flags of every verb that runs a model.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Inputs")]
pub(crate) struct Feeding {
    /// An input by name or position: a file (.pb, .npy, .json, or a picture), - for standard input, or JSON
    ///
    /// JSON such as 3, '[1, -1]', '[[1.5, "NaN"]]', '["a"]' has the type that the model declares; complex numbers are
    /// pairs, [re, im]. A decimal is rounded to the nearest value of the type; integers must be values that it holds
    /// exactly, and decimals for floats of 8 bits and less too, once rounded to float32. Sequences are lists of values, optionals a value or null, maps
    /// objects; a value as -o FILE.json writes it can be read too. A .pb file is a TensorProto, SequenceProto, OptionalProto
    /// or MapProto. Pictures are .png, .jpg, .bmp, .webp, .tif, .jp2 and .ppm files: samples of 16 bits lose their low byte,
    /// and transparency is dropped, but of a .png file for an input of 4 channels. If the model has one input, NAME= may be
    /// omitted.
    #[arg(short, long, value_name = "NAME=VALUE", allow_negative_numbers = true)]
    input: Vec<String>,

    /// Feed input_0.pb, input_1.pb, .. of a folder such as test_data_set_0, or a .npz file by name
    ///
    /// Files of a folder match the model's inputs by position, including those with an initializer. An array of a .npz file
    /// takes at most --limit tensor_bytes, all together take at most --limit run_bytes.
    #[arg(long, value_name = "DIR|FILE")]
    inputs: Option<PathBuf>,

    /// Round floats to the float type that an input has
    ///
    /// NumPy makes float64 of Python's numbers. A number that becomes infinite is an error. Types of 16 to 64 bits.
    #[arg(long)]
    cast: bool,

    /// Write what is fed to a .npz file, or as input_0.pb, .. to a folder: --inputs reads it
    ///
    /// So others can repeat a run of --random. A .npz file is for NumPy, and has tensors of its types only.
    #[arg(long, value_name = "DIR|FILE.npz")]
    save_inputs: Option<PathBuf>,

    /// Feed random values to the inputs that are not given
    ///
    /// Floats are from -1 to 1, integers 0 or 1; --range changes that. A dimension without a size has the one that --set
    /// gives, that of the same name in an input that is given, or 1.
    #[arg(long)]
    random: bool,

    /// The seed of random values: the same values on every machine
    #[arg(long, value_name = "N", default_value_t = 0, requires = "random", hide_short_help = true)]
    seed: u64,

    /// The size of an open dimension: by its name, or INPUT.AXIS=SIZE
    #[arg(long, value_name = "NAME=SIZE", requires = "random")]
    set: Vec<String>,

    /// The least and the greatest random number, of all inputs or of one
    #[arg(long, value_name = "[NAME=]LO..HI", requires = "random", hide_short_help = true, allow_hyphen_values = true)]
    range: Vec<String>,

    #[command(flatten)]
    pictures: Pictures,
}

/// Values by the names of inputs, in the order of the model.
pub(crate) type Feeds<'a> = Vec<(&'a str, Value)>;

impl Feeding {
    /// Whether there is something to feed.
    pub(crate) fn is_given(&self) -> bool {
        self.random || self.inputs.is_some() || !self.input.is_empty()
    }

    /// As [`Feeding::given`]; they are saved, if that is asked for.
    pub(crate) fn inputs<'a>(&self, model: &'a Model) -> Result<Feeds<'a>, Failure> {
        let feeds = self.given(model)?;
        if let Some(path) = &self.save_inputs {
            save(path, model, &feeds)?;
        }
        Ok(feeds)
    }

    /// Saves the inputs that another model gets, if that is asked for: nothing is made if it isn't.
    pub(crate) fn save_of<'a>(
        &self,
        made: impl FnOnce() -> Option<(Model, &'a [(String, Value)])>,
    ) -> Result<(), Failure> {
        let Some(path) = &self.save_inputs else { return Ok(()) };
        let Some((model, values)) = made() else {
            print::note("--save-inputs: nothing is written, as the values of the inputs aren't known");
            return Ok(());
        };
        save(path, &model, &values.iter().map(|(name, value)| (name.as_str(), value.clone())).collect())
    }

    /// The values to feed, or all faults in them.
    pub(crate) fn given<'a>(&self, model: &'a Model) -> Result<Feeds<'a>, Failure> {
        let mut found = Found::new(model);
        if let Some(path) = &self.inputs {
            let shown = print::path(&path.to_string_lossy());
            found.files(self, path).map_err(|why| Failure::usage(format!("--inputs {shown}: {why}")))?;
        }
        found.named(self);
        if self.random {
            self.fill(&mut found)?;
        }
        let missing = model.inputs().filter(|info| !found.has(info) && !model.has_default(&info.name));
        let mut missing: Vec<String> =
            missing.map(|info| format!("missing input {} ({})", quote(&info.name), declared(info))).collect();
        if let Some(last) = missing.last_mut() {
            last.push_str(": -i NAME=VALUE gives a value, --random random ones");
        }
        found.faults.extend(missing);
        if !found.faults.is_empty() {
            return Err(Failure::usage(print::listed(&found.faults, "; ")));
        }
        if let Some(why) = self.pictures.unused() {
            return Err(Failure::usage(why));
        }
        let mut values = found.values;
        let value = |info: &'a ValueInfo| Some((info.name.as_str(), values.remove(info.name.as_str())?));
        Ok(model.inputs().filter_map(value).collect())
    }

    /// Where `--save-inputs` writes.
    pub(crate) fn saved(&self) -> impl Iterator<Item = &Path> {
        self.save_inputs.iter().map(PathBuf::as_path)
    }

    /// The values of single inputs, by name: what `-i` gives.
    pub(crate) fn named(input: &[String], model: &Model) -> Result<HashMap<String, Value>, Failure> {
        let mut found = Found::new(model);
        found.named(&Feeding { input: input.to_vec(), ..Feeding::default() });
        if !found.faults.is_empty() {
            return Err(Failure::usage(print::listed(&found.faults, "; ")));
        }
        Ok(found.values.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    }

    /// A value for an input of another float type, if that is wanted.
    pub(crate) fn cast(&self, info: &ValueInfo, value: Value) -> Result<Value, String> {
        match (info.dtype(), &value) {
            (Some(to), Value::Tensor(tensor)) if floats::differ(tensor.dtype(), to) => {
                if !self.cast {
                    let [own, to] = [tensor.dtype(), to].map(dtype_name);
                    return Err(format!("it is {own}, but the model expects {to}: --cast rounds it"));
                }
                floats::rounded(tensor, to).map(Value::from).map_err(|why| format!("--cast: {why}"))
            }
            _ => Ok(value),
        }
    }

    /// Random values for the inputs that have none.
    fn fill(&self, found: &mut Found<'_>) -> Result<(), Failure> {
        let model = found.model;
        let mut random = Random::within(model.limits(), self.seed);
        let mut sizes = Sizes::new(&self.set, model)?;
        for info in model.inputs() {
            if let Some(Value::Tensor(tensor)) = found.values.get(info.name.as_str()) {
                sizes.learn(info, tensor.shape());
            }
        }
        let mut ranges: Vec<(&str, Range)> = Vec::new();
        for text in &self.range {
            let (name, range) = range(text, model)?;
            if ranges.iter().any(|(known, _)| *known == name) {
                let what = match name {
                    "" => "all inputs have".to_string(),
                    name => format!("input {} has", quote(name)),
                };
                return Err(Failure::usage(format!("--range {}: {what} a range already", print::path(text))));
            }
            ranges.push((name, range));
        }
        for info in model.inputs() {
            if found.has(info) || model.has_default(&info.name) {
                continue;
            }
            let of = |name: &str| ranges.iter().find(|(input, _)| *input == name).map(|(_, range)| *range);
            let range = of(&info.name).or_else(|| of(""));
            let value = match (info.dtype(), &info.shape) {
                (Some(dtype), Some(dims)) => random.tensor(dtype, &sizes.shape(info, dims), range),
                (Some(_), None) => Err("it has no declared shape: give it with -i".to_string()),
                (None, _) => Err("it is not declared as a tensor: give it with -i".to_string()),
            };
            found.add(info, value.map(Value::from));
        }
        Ok(())
    }
}

/// The values that are found.
struct Found<'a> {
    model: &'a Model,
    values: HashMap<&'a str, Value>,
    /// The inputs for which something is given, good or not.
    given: HashSet<&'a str>,
    faults: Vec<String>,
}

impl<'a> Found<'a> {
    fn new(model: &'a Model) -> Found<'a> {
        Found { model, values: HashMap::new(), given: HashSet::new(), faults: Vec::new() }
    }

    fn has(&self, info: &ValueInfo) -> bool {
        self.given.contains(info.name.as_str())
    }

    /// Adds a value that was read.
    fn cast(&mut self, feeding: &Feeding, info: &'a ValueInfo, value: Result<Value, String>) {
        self.add(info, value.and_then(|value| feeding.cast(info, value)));
    }

    fn add(&mut self, info: &'a ValueInfo, value: Result<Value, String>) {
        let name = quote(&info.name);
        match value {
            _ if !self.given.insert(&info.name) => self.faults.push(format!("input {name} is given twice")),
            Err(why) => self.faults.push(format!("input {name}: {why}")),
            Ok(value) => _ = self.values.insert(&info.name, value),
        }
    }

    fn read(&mut self, feeding: &Feeding, info: &'a ValueInfo, text: &str) {
        let (value_type, shape) = (info.value_type.as_ref(), info.shape.as_deref());
        let pictures = Some((&feeding.pictures, self.model.limits()));
        self.cast(feeding, info, value(text, Wanted { value_type, shape, pictures }));
    }

    /// What `-i` gives.
    fn named(&mut self, feeding: &Feeding) {
        for text in &feeding.input {
            match find(text, self.model) {
                Named::Declared(info, text) => self.read(feeding, info, text),
                Named::Other(name) => self.faults.push(unknown(self.model, name)),
                Named::Not => self.faults.push(format!("-i {}: NAME= is missing", quote(text))),
            }
        }
    }

    /// The files of a folder by position, or an archive's by name.
    fn files(&mut self, feeding: &Feeding, path: &Path) -> Result<(), String> {
        if path.is_file() {
            let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
            for (name, tensor) in npz::read(&bytes, self.model.limits())? {
                match self.model.inputs().find(|info| info.name == name) {
                    Some(info) => self.cast(feeding, info, Ok(tensor.into())),
                    None => self.faults.push(unknown(self.model, &name)),
                }
            }
            return Ok(());
        }
        for (position, path) in numbered(path, "input_")? {
            match self.model.inputs().nth(position) {
                Some(info) => self.read(feeding, info, &path.to_string_lossy()),
                None => {
                    let count = counted(self.model.inputs().len(), "input");
                    self.faults.push(format!("{}: the model has {count}", print::path(&path.to_string_lossy())));
                }
            }
        }
        Ok(())
    }
}

/// Writes what is fed, so that `--inputs` reads it.
fn save(path: &Path, model: &Model, feeds: &Feeds<'_>) -> Result<(), Failure> {
    let text = |why: String| format!("--save-inputs {}: {why}", print::path(&path.to_string_lossy()));
    let wrong = |why: String| Failure::usage(text(why));
    let failed = |path: &Path, why: Unwritten| why.failure(&path.to_string_lossy(), text);
    let cancel = Cancel::new();
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npz")) {
        let mut tensors = Vec::new();
        for (name, value) in feeds {
            let tensor = value.tensor();
            tensors.push((
                *name,
                tensor.map_err(|_| wrong(format!("input {} is not a tensor: give a folder", quote(name))))?,
            ));
        }
        output::check_writable(path).map_err(|e| wrong(e.to_string()))?;
        let written = output::file(path, &cancel, |to| npz::write(&tensors, to, &cancel));
        return written.map_err(|why| failed(path, why.if_unfit(|why| format!("{why}: give a folder"))));
    }
    std::fs::create_dir_all(path).map_err(|e| wrong(e.to_string()))?;
    if let Ok(files) = numbered(path, "input_") {
        return Err(wrong(format!("it has {} already", counted(files.len(), "input"))));
    }
    for (name, value) in feeds {
        let position = model.inputs().position(|info| info.name == *name).unwrap_or(0);
        let file = path.join(format!("input_{position}.pb"));
        output::file(&file, &cancel, |to| output::write_proto(name, value, to)).map_err(|why| failed(&file, why))?;
    }
    Ok(())
}

/// The input that `NAME=VALUE` or `POSITION=VALUE` is for.
fn find<'a, 't>(text: &'t str, model: &'a Model) -> Named<'a, 't> {
    let named = split(text, model.inputs());
    if let Named::Other(name) = named
        && let Some(info) = name.parse().ok().and_then(|position| model.inputs().nth(position))
    {
        return Named::Declared(info, text.get(name.len() + 1..).unwrap_or(""));
    }
    named
}

/// The files `input_0.pb`, `input_1.pb`, .. of a folder.
pub(crate) fn numbered(folder: &Path, prefix: &str) -> Result<BTreeMap<usize, PathBuf>, String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(|e| e.to_string())? {
        let path = entry.map_err(|e| e.to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(".pb")?.parse().ok());
        files.extend(number.map(|number: usize| (number, path.clone())));
    }
    if files.is_empty() { Err(format!("it has no {prefix}0.pb")) } else { Ok(files) }
}

/// The sizes of open dimensions.
struct Sizes<'a> {
    given: Vec<(&'a str, usize)>,
    /// Sizes that inputs which are given have.
    learned: HashMap<String, usize>,
}

impl<'a> Sizes<'a> {
    fn new(texts: &'a [String], model: &Model) -> Result<Sizes<'a>, Failure> {
        let mut given = Vec::new();
        for text in texts {
            let wrong = |why: String| Failure::usage(format!("--set {}: {why}", print::path(text)));
            let split = text.rsplit_once('=').and_then(|(name, size)| Some((name, size.parse().ok()?)));
            let (name, size) = split.ok_or_else(|| wrong("expected NAME=SIZE".to_string()))?;
            if !open(model).iter().any(|(symbol, place)| symbol.as_deref() == Some(name) || place == name) {
                let mut known: Vec<String> =
                    open(model).into_iter().map(|(symbol, place)| print::path(&symbol.unwrap_or(place))).collect();
                let mut seen = HashSet::new();
                known.retain(|name| seen.insert(name.clone()));
                let known = if known.is_empty() { "none".to_string() } else { print::listed(&known, ", ") };
                return Err(wrong(format!("no input has this dimension; open dimensions: {known}")));
            }
            if given.iter().any(|(known, _)| *known == name) {
                return Err(wrong(format!("dimension {} has a size already", quote(name))));
            }
            given.push((name, size));
        }
        Ok(Sizes { given, learned: HashMap::new() })
    }

    fn learn(&mut self, info: &ValueInfo, shape: &[usize]) {
        for (dim, size) in info.shape.iter().flatten().zip(shape) {
            if let Dim::Symbol(name) = dim {
                self.learned.entry(name.clone()).or_insert(*size);
            }
        }
    }

    fn shape(&mut self, info: &ValueInfo, dims: &[Dim]) -> Vec<usize> {
        let given = |name: &str| self.given.iter().find(|(known, _)| *known == name).map(|(_, size)| *size);
        let mut sizes = Vec::new();
        for (axis, dim) in dims.iter().enumerate() {
            let place = format!("{}.{axis}", info.name);
            let (name, size) = match dim {
                Dim::Fixed(size) => (None, Some(*size)),
                Dim::Symbol(name) => {
                    (Some(name), given(name).or_else(|| given(&place)).or_else(|| self.learned.get(name).copied()))
                }
                _ => (None, given(&place)),
            };
            sizes.push(size.unwrap_or_else(|| {
                let name = name.cloned().unwrap_or(place);
                print::note(&format!(
                    "dimension {axis} of input {} is 1: --set {}=SIZE changes it",
                    quote(&info.name),
                    print::path(&name)
                ));
                1
            }));
        }
        for (dim, size) in dims.iter().zip(&sizes) {
            if let Dim::Symbol(name) = dim {
                self.learned.entry(name.clone()).or_insert(*size);
            }
        }
        sizes
    }
}

/// The open dimensions of the inputs: each one's name, if it has one, and its place.
fn open(model: &Model) -> Vec<(Option<String>, String)> {
    let mut all = Vec::new();
    for info in model.inputs() {
        for (axis, dim) in info.shape.iter().flatten().enumerate() {
            let place = format!("{}.{axis}", info.name);
            match dim {
                Dim::Symbol(name) => all.push((Some(name.clone()), place)),
                Dim::Unknown => all.push((None, place)),
                _ => {}
            }
        }
    }
    all
}

/// `[NAME=]LO..HI`: the name is empty for all inputs.
fn range<'t>(text: &'t str, model: &Model) -> Result<(&'t str, Range), Failure> {
    let wrong = |why: &str| Failure::usage(format!("--range {}: {why}", print::path(text)));
    let (name, bounds) = text.rsplit_once('=').unwrap_or(("", text));
    let bounds = Range::parse(bounds).ok_or_else(|| wrong("expected LO..HI, such as 0..30521"))?;
    if !name.is_empty() && !model.inputs().any(|info| info.name == name) {
        let names: Vec<String> = model.inputs().map(|info| quote(&info.name)).collect();
        let names = print::listed(&names, ", ");
        return Err(wrong(&format!("the model has no input {}; its inputs: {names}", quote(name))));
    }
    Ok((name, bounds))
}

/// The library's error for a name that is not an input.
fn unknown(model: &Model, name: &str) -> String {
    let refused = model.runner().feed(name, vec![0i64]);
    refused.err().map_or_else(String::new, |error| format!("{error:#}"))
}

/// The declared type and shape: `float32, [N, 3]`.
fn declared(info: &ValueInfo) -> String {
    let Some(value_type) = &info.value_type else { return "any type".to_string() };
    let name = type_name(value_type);
    match (&info.shape, value_type.dtype()) {
        (Some(dims), _) => format!("{name}, [{}]", dims.iter().map(Dim::to_string).collect::<Vec<_>>().join(", ")),
        (None, Some(_)) => format!("{name}, any shape"),
        (None, None) => name,
    }
}
