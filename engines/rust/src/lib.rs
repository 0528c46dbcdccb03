//! What the engines share: how `onnxref test` calls them, and the few fields of ONNX's files that they need.
//!
//! With three paths as arguments (model, inputs, outputs) an engine runs one case. Without arguments it reads a line with
//! the three paths, tabs between them, for each case, and answers with a line: `ok`, `unsupported WHY` or `failed WHY`.

use prost::Message;
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A tensor as it is in a file: numbers as little-endian bytes.
#[derive(Clone, PartialEq, Message)]
pub struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    /// The number of the element type in ONNX.
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    #[prost(string, tag = "8")]
    pub name: String,
    #[prost(bytes = "vec", tag = "9")]
    pub raw_data: Vec<u8>,
}

/// Element types of ONNX.
pub const FLOAT: i32 = 1;
pub const UINT8: i32 = 2;
pub const INT8: i32 = 3;
pub const INT32: i32 = 6;
pub const INT64: i32 = 7;
pub const STRING: i32 = 8;
pub const BOOL: i32 = 9;

/// Why there are no outputs.
pub enum Trouble {
    Unsupported(String),
    Failed(String),
}

impl Trouble {
    pub fn unsupported(why: impl ToString) -> Trouble {
        Trouble::Unsupported(why.to_string())
    }

    pub fn failed(why: impl ToString) -> Trouble {
        Trouble::Failed(why.to_string())
    }
}

/// A case: the model's file, the inputs, and the element types of the outputs as the model declares them.
pub struct Case {
    pub model: PathBuf,
    pub inputs: Vec<Tensor>,
    pub outputs: Vec<i32>,
}

/// Runs all cases that are asked for.
pub fn serve(run: impl Fn(&Case) -> Result<Vec<Tensor>, Trouble>) {
    std::panic::set_hook(Box::new(|_| {}));
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if let [model, inputs, outputs] = &paths[..] {
        let (code, why) = match attempt(&run, model, inputs, outputs) {
            Ok(()) => (0, String::new()),
            Err(Trouble::Unsupported(why)) => (77, why),
            Err(Trouble::Failed(why)) => (1, why),
        };
        eprintln!("{}", one_line(&why));
        std::process::exit(code);
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let paths: Vec<&Path> = line.split('\t').map(Path::new).collect();
        let answer = match paths[..] {
            [model, inputs, outputs] => match attempt(&run, model, inputs, outputs) {
                Ok(()) => "ok".to_string(),
                Err(Trouble::Unsupported(why)) => format!("unsupported {}", one_line(&why)),
                Err(Trouble::Failed(why)) => format!("failed {}", one_line(&why)),
            },
            _ => "failed three paths are needed".to_string(),
        };
        println!("{answer}");
        std::io::stdout().flush().ok();
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs a case. A panic is a failure.
fn attempt(
    run: impl Fn(&Case) -> Result<Vec<Tensor>, Trouble>,
    model: &Path,
    inputs: &Path,
    outputs: &Path,
) -> Result<(), Trouble> {
    let work = || -> Result<(), Trouble> {
        let results = run(&read(model, inputs)?)?;
        for (k, tensor) in results.iter().enumerate() {
            std::fs::write(outputs.join(format!("output_{k}.pb")), tensor.encode_to_vec()).map_err(Trouble::failed)?;
        }
        Ok(())
    };
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
        Err(Trouble::failed(format!("panicked: {}", text.unwrap_or("?"))))
    })
}

fn read(model: &Path, inputs: &Path) -> Result<Case, Trouble> {
    let declared = Model::decode(&*std::fs::read(model).map_err(Trouble::failed)?).map_err(Trouble::failed)?;
    let graph = declared.graph.unwrap_or_default();
    let element = |value: &ValueInfo| value.r#type.as_ref()?.tensor.as_ref().map(|tensor| tensor.element);
    let types = |values: &[ValueInfo]| {
        values.iter().map(element).collect::<Option<Vec<i32>>>().ok_or(Trouble::unsupported("only tensors are supported"))
    };
    let (outputs, _) = (types(&graph.output)?, types(&graph.input)?);
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(inputs).map_err(Trouble::failed)? {
        let path = entry.map_err(Trouble::failed)?.path();
        let number = path.file_stem().and_then(|name| name.to_str()?.strip_prefix("input_")?.parse::<usize>().ok());
        let bytes = std::fs::read(&path).map_err(Trouble::failed)?;
        files.insert(number, Tensor::decode(&*bytes).map_err(Trouble::failed)?);
    }
    let inputs: Vec<Tensor> = files.into_values().collect();
    if inputs.iter().any(|tensor| tensor.data_type == STRING) {
        return Err(Trouble::unsupported("strings are not supported"));
    }
    Ok(Case { model: model.to_path_buf(), inputs, outputs })
}

#[derive(Clone, PartialEq, Message)]
struct Model {
    #[prost(message, optional, tag = "7")]
    graph: Option<Graph>,
}

#[derive(Clone, PartialEq, Message)]
struct Graph {
    #[prost(message, repeated, tag = "11")]
    input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<ValueInfo>,
}

#[derive(Clone, PartialEq, Message)]
struct ValueInfo {
    #[prost(message, optional, tag = "2")]
    r#type: Option<Type>,
}

#[derive(Clone, PartialEq, Message)]
struct Type {
    #[prost(message, optional, tag = "1")]
    tensor: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorType {
    #[prost(int32, tag = "1")]
    element: i32,
}
