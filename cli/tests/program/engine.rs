//! `onnxref test` on other engines, as a user calls it.

use crate::common::{Ran, data, onnxref};
use onnxref::Tensor;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Cases of Gather, GatherElements and GatherND.
const CASES: &str = "gather/onnx-1.12.0/node";

const ONNXREF: &str = env!("CARGO_BIN_EXE_onnxref");

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs a case of [`CASES`] with flags.
fn test(case: &str, flags: &[&str]) -> Ran {
    onnxref([&["test", path(&data(CASES)), "-k", &format!("/{case}$")], flags].concat())
}

/// An engine that is a script: `$1` is the model, `$2` the folder of inputs, `$3` that of outputs.
struct Script {
    folder: TempDir,
}

impl Script {
    fn new(text: &str) -> Script {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("engine");
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        Script { folder }
    }

    fn file(&self, name: &str) -> String {
        path(&self.folder.path().join(name)).to_string()
    }

    fn command(&self) -> String {
        format!("{} {{model}} {{inputs}} {{outputs}}", self.file("engine"))
    }

    /// Runs a case on the engine.
    fn test(&self, case: &str, flags: &[&str]) -> Ran {
        test(case, &[&["--engine", &self.command()], flags].concat())
    }

    /// As [`Script::test`], for a script that reads lines.
    fn test_lines(&self, case: &str, flags: &[&str]) -> Ran {
        test(case, &[&["--engine-lines", &self.file("engine"), "-j", "1"], flags].concat())
    }
}

/// A script that computes as onnxref does, and changes what it wrote.
fn after_onnxref(text: &str) -> Script {
    Script::new(&format!("{ONNXREF} -q run $1 --inputs $2 -o $3/output_0.pb || exit 1\n{text}"))
}

/// A script for lines; `$MODEL`, `$INPUTS` and `$OUTPUTS` are the paths of a case.
fn for_each_line(text: &str) -> Script {
    Script::new(&format!("T=$(printf '\\t')\nwhile IFS=$T read -r MODEL INPUTS OUTPUTS; do\n{text}\ndone"))
}

/// The only line of a failed case, without its name, after "FAILED ..: test_data_set_0: ".
#[track_caller]
fn failure(ran: &Ran) -> &str {
    assert_eq!((ran.code, ran.last()), (Some(1), "0 passed (0 bit by bit), 1 failed, 0 unsupported"), "{ran:?}");
    ran.out.lines().next().unwrap().split_once(": test_data_set_0: ").unwrap().1
}

#[test]
fn an_engine_that_is_right() {
    let right = after_onnxref("");
    let ran = right.test("test_gather_.*", &["--min-cases", "7"]);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (Some(0), "7 passed (7 bit by bit), 0 failed, 0 unsupported\n", "")
    );
    // An archive has no files on the disk.
    let archive = data("onnx-1.23.2-node.tar.xz");
    let ran = onnxref(["test", path(&archive), "-k", "/test_(gather|abs)", "--engine", &right.command()]);
    assert_eq!((ran.code, ran.last()), (Some(0), "11 passed (11 bit by bit), 0 failed, 0 unsupported"), "{ran:?}");
    // A light model's inputs are made.
    let folder = TempDir::new().unwrap();
    for (from, to) in [("model.onnx", "m.onnx"), ("test_data_set_0/output_0.pb", "m_output_0.pb")] {
        fs::copy(data("gather/onnx-1.12.0/node/test_gather_0").join(from), folder.path().join(to)).unwrap();
    }
    let ran = onnxref(["test", path(folder.path()), "--engine", &right.command()]);
    let why = "input \"indices\" has no file, and is not a float tensor of declared rank";
    assert_eq!(failure(&ran), why);
}

#[test]
fn what_an_engine_gets() {
    let script = Script::new("ls -d $1 && ls $2 && ls -A $3 > $3/../../count; echo \"$1 $2 $3\" >&2; exit 77");
    let ran = script.test("test_gather_0", &["--list", "unsupported"]);
    let why = ran.out.trim_end().split_once(": ").unwrap().1;
    let [model, inputs, outputs] = why.split(' ').collect::<Vec<_>>()[..] else { panic!("{ran:?}") };
    assert!(Path::new(model).is_absolute() && model.ends_with("gather/onnx-1.12.0/node/test_gather_0/model.onnx"));
    assert!(inputs.ends_with("/inputs") && outputs.ends_with("/outputs"), "{why}");
    // Nothing is left of the files.
    let folder = Path::new(inputs).parent().unwrap();
    assert!(folder.is_absolute() && !folder.exists() && !folder.parent().unwrap().exists());
    let script = Script::new("{ ls $2; ls -A $3; } | tr '\\n' ' ' >&2; exit 77");
    let ran = script.test("test_gather_0", &["--list", "unsupported"]);
    assert!(ran.out.ends_with("test_gather_0: input_0.pb input_1.pb\n"), "{ran:?}");
}

#[test]
fn outputs_that_are_wrong() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, tensor: Tensor| fs::write(folder.path().join(name), tensor.to_proto_bytes("")).unwrap();
    let want = fs::read(data(CASES).join("test_gather_2d_indices/test_data_set_0/output_0.pb")).unwrap();
    let mut array = Tensor::from_proto_bytes(want).unwrap().into_array::<f32>().unwrap();
    write("type", Tensor::from_array(array.mapv(f64::from)));
    array.mapv_inplace(f32::next_up);
    write("close", Tensor::from_array(array.clone()));
    array[[1, 0, 1]] = 9.0;
    write("value", Tensor::from_array(array));
    fs::write(folder.path().join("garbage"), b"\x08\xff\xff\xff").unwrap();
    let gives = |name: &str, flags: &[&str]| {
        Script::new(&format!("cp {}/{name} $3/output_0.pb", path(folder.path()))).test("test_gather_2d_indices", flags)
    };
    let close = gives("close", &["-v"]);
    assert_eq!((close.code, close.last()), (Some(0), "1 passed (0 bit by bit), 0 failed, 0 unsupported"));
    assert!(close.out.lines().next().unwrap().ends_with("test_gather_2d_indices: within 1 ulp"), "{close:?}");
    let value = gives("value", &[]);
    assert!(failure(&value).starts_with("output \"y\" is 9 at [1, 0, 1], expected "), "{value:?}");
    assert_eq!(failure(&gives("type", &[])), "output \"y\" is float64[3, 1, 2], expected float32[3, 1, 2]");
    let garbage = gives("garbage", &[]);
    assert!(failure(&garbage).starts_with("output_0.pb of the engine: "), "{garbage:?}");
    assert_eq!(
        failure(&gives("/dev/null", &[])),
        "the engine ended with exit status: 1: cp: cannot stat '".to_string()
            + path(folder.path())
            + "//dev/null': No such file or directory"
    );
}

#[test]
fn outputs_that_are_no_files() {
    let says = |text: &str| failure(&Script::new(text).test("test_gather_0", &[])).to_string();
    assert_eq!(says("true"), "the engine gives no output_0.pb");
    assert_eq!(says("rmdir $3"), "the engine gives no output_0.pb");
    assert_eq!(says("mkfifo $3/output_0.pb"), "output_0.pb of the engine: it is not a file");
    assert_eq!(says("mkdir $3/output_0.pb"), "output_0.pb of the engine: it is not a file");
    assert_eq!(says("ln -s /dev/zero $3/output_0.pb"), "output_0.pb of the engine: it is not a file");
    let huge = "output_0.pb of the engine: it has 1099511627776 bytes: protobuf holds 2147483647";
    assert_eq!(says("truncate -s 1T $3/output_0.pb"), huge);
}

#[test]
fn an_engine_that_ends_badly() {
    let says = |text: &str| failure(&Script::new(text).test("test_gather_0", &[])).to_string();
    assert_eq!(says("exit 3"), "the engine ended with exit status: 3");
    assert_eq!(says("echo first >&2; echo last >&2; exit 1"), "the engine ended with exit status: 1: last");
    assert_eq!(says("printf '\\033[31mred' >&2; exit 1"), "the engine ended with exit status: 1: \\u{1b}[31mred");
    assert!(says("kill -SEGV $$").starts_with("the engine ended with signal: 11"));
    // More than the pipe holds, and no end of a line.
    assert!(says("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1").len() < 5000);
}

#[test]
fn what_is_not_supported_is_counted_apart() {
    let script = Script::new("echo 'no Gather' >&2; echo more >&2; exit 77");
    let ran = script.test("test_gather_0", &[]);
    let lines =
        "Why cases can't run, and how many:\n     1  no Gather\n0 passed (0 bit by bit), 0 failed, 1 unsupported\n";
    assert_eq!((ran.code, ran.out.as_str()), (Some(5), lines));
    assert_eq!(ran.err, "error: nothing was tested: every case is unsupported\n");
    let silent = Script::new("exit 77").test("test_gather_0", &["-v"]);
    assert!(silent.out.contains("test_gather_0: the engine doesn't say why\n"), "{silent:?}");
}

#[test]
fn a_time_limit_ends_all_that_was_started() {
    let script = Script::new("sleep 60 & echo $! > $0.pid; sleep 60");
    let started = Instant::now();
    let ran = script.test("test_gather_0", &["--timeout", "0.5"]);
    assert_eq!(failure(&ran), "the engine was stopped: it took longer than --timeout allows");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(ends(&fs::read_to_string(script.file("engine.pid")).unwrap()));
    // What an engine leaves behind is ended too, and it may hold standard error open.
    let script = Script::new("sleep 60 & echo $! > $0.pid; exit 1");
    let started = Instant::now();
    assert_eq!(failure(&script.test("test_gather_0", &[])), "the engine ended with exit status: 1");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(ends(&fs::read_to_string(script.file("engine.pid")).unwrap()));
}

/// Whether a process ends soon. One that nobody has reaped has ended.
fn ends(id: &str) -> bool {
    let state = || Command::new("ps").args(["-o", "stat=", "-p", id.trim()]).output().unwrap().stdout;
    (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        matches!(state().first(), None | Some(b'Z'))
    })
}

#[test]
fn an_interruption_ends_engines_and_removes_their_files() {
    let script = Script::new("echo $$ $2 > $0.tmp; mv $0.tmp $0.pid; sleep 60");
    let mut program = Command::new(ONNXREF);
    program.args(["test", path(&data(CASES)), "-k", "/test_gather_0$", "--engine", &script.command()]);
    let mut program = program.spawn().unwrap();
    let seen = (0..1000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        fs::read_to_string(script.file("engine.pid")).ok()
    });
    let seen = seen.unwrap();
    let (id, inputs) = seen.trim().split_once(' ').unwrap();
    assert!(Path::new(inputs).is_dir());
    assert!(Command::new("kill").args(["-INT", &program.id().to_string()]).status().unwrap().success());
    assert_eq!(program.wait().unwrap().code(), Some(130));
    assert!(ends(id) && !Path::new(inputs).exists());
}

#[test]
fn commands_that_can_not_be_used() {
    let wrong = |flags: &[&str], why: &str| {
        let ran = test("test_gather_0", flags);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(2), "", &*format!("error: {why}\n")));
    };
    wrong(&["--engine", "run {model}"], "--engine \"run {model}\": {model}, {inputs} and {outputs} are needed");
    wrong(&["--engine", ""], "--engine \"\": there is no command");
    wrong(&["--engine", "a 'b"], "--engine \"a 'b\": a quote has no end");
    wrong(
        &["--engine-lines", "run {model}"],
        "--engine-lines \"run {model}\": it gets its paths on standard input: nothing is replaced in it",
    );
    let none = "/no/such/engine\" can't be started: No such file or directory (os error 2)";
    wrong(&["--engine", "/no/such/engine {model} {inputs} {outputs}"], &format!("--engine: \"{none}"));
    wrong(&["--engine-lines", "/no/such/engine"], &format!("--engine-lines: \"{none}"));
    assert_eq!(test("test_gather_0", &["--engine", "a", "--engine-lines", "b"]).code, Some(2));
}

/// No engine is at fault where its files can't be written, and no further case is tried.
#[cfg(target_os = "linux")]
#[test]
fn files_without_room() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().to_str().unwrap();
    // The engine's first case takes the folder away in which the files of the next one are.
    let script = Script::new("rm -r \"$(dirname \"$(dirname \"$1\")\")\"; exit 77");
    let command = format!("'{}' {{inputs}} {{model}} {{outputs}}", script.file("engine"));
    let output = Command::new(ONNXREF)
        .args(["test", data("gather").to_str().unwrap(), "--jobs", "1", "--engine", &command])
        .env("TMPDIR", temporary)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let first =
        format!("error: --engine: its files can't be written to {temporary}: No such file or directory (os error 2)");
    let last = "; the variable TMPDIR names another folder\n";
    assert!(output.status.code() == Some(4) && said.starts_with(&first) && said.ends_with(last), "{said}");
}

#[test]
fn quotes_keep_words_together() {
    let script = Script::new("echo \"$1|$4\" >&2; exit 77");
    let command = format!("'{}' 'a  b' {{model}} {{inputs}} x={{outputs}}", script.file("engine"));
    let ran = test("test_gather_0", &["--engine", &command, "--list", "unsupported"]);
    assert!(ran.out.contains(": a  b|x=/") && ran.out.ends_with("/outputs\n"), "{ran:?}");
}

#[test]
fn an_engine_that_stays() {
    let script =
        for_each_line(&format!("{ONNXREF} -q run $MODEL --inputs $INPUTS -o $OUTPUTS/output_0.pb </dev/null; echo ok"));
    let ran = script.test_lines("test_gather_.*", &[]);
    assert_eq!((ran.code, ran.last()), (Some(0), "7 passed (7 bit by bit), 0 failed, 0 unsupported"), "{ran:?}");
    let script = for_each_line(
        "echo x >> $0.count\nN=$(wc -l < $0.count)\n[ $N = 1 ] && echo unsupported no $N || echo failed it is $N",
    );
    let ran = script.test_lines("test_gather_[01]", &["-v"]);
    assert_eq!((ran.code, ran.last()), (Some(1), "0 passed (0 bit by bit), 1 failed, 1 unsupported"), "{ran:?}");
    assert!(ran.out.contains("/test_gather_0: no 1\n"), "{ran:?}");
    assert!(ran.out.contains("/test_gather_1: test_data_set_0: the engine failed: it is 2\n"), "{ran:?}");
}

#[test]
fn an_engine_that_dies_is_started_again() {
    let script = Script::new("echo x >> $0.count; read LINE; echo oh >&2; exit 4");
    let ran = script.test_lines("test_gather_[01]", &[]);
    assert_eq!((ran.code, ran.last()), (Some(1), "0 passed (0 bit by bit), 2 failed, 0 unsupported"), "{ran:?}");
    let why = "test_data_set_0: the engine ended with exit status: 4: oh";
    assert_eq!(ran.out.lines().filter(|line| line.ends_with(why)).count(), 2, "{ran:?}");
    assert_eq!(fs::read_to_string(script.file("engine.count")).unwrap().lines().count(), 2);
}

#[test]
fn answers_that_are_none() {
    let says = |text: &str| failure(&for_each_line(text).test_lines("test_gather_0", &["--timeout", "20"])).to_string();
    let expected = "\"ok\", \"unsupported WHY\" or \"failed WHY\" is expected";
    assert_eq!(says("echo 'OK then'"), format!("the engine answered \"OK then\": {expected}"));
    assert_eq!(says("echo"), format!("the engine answered \"\": {expected}"));
    assert_eq!(says("exec >&-; sleep 60"), "the engine closed its standard output");
    let long = "the engine's answer can't be read: a line has more than 65536 bytes";
    assert_eq!(says("cat /dev/zero | tr '\\0' x"), long);
    let early = Script::new("while :; do echo ok; done").test_lines("test_gather_[01]", &["--timeout", "20"]);
    assert_eq!((early.code, early.last()), (Some(1), "0 passed (0 bit by bit), 2 failed, 0 unsupported"), "{early:?}");
}

#[test]
fn an_engine_that_never_answers() {
    let stopped = "the engine was stopped: it took longer than --timeout allows";
    for text in ["sleep 60", "trap '' TERM; read LINE; sleep 60"] {
        let started = Instant::now();
        let ran = Script::new(text).test_lines("test_gather_0", &["--timeout", "0.5"]);
        assert_eq!(failure(&ran), stopped);
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    }
}

#[test]
fn expected_failures() {
    let file = TempDir::new().unwrap();
    let list = file.path().join("xfail.txt");
    let script = after_onnxref("case $1 in *gather_1*) rm $3/*;; esac");
    let run = |text: &str, flags: &[&str]| {
        fs::write(&list, text).unwrap();
        script.test("test_gather_[01]", &[&["--xfail", path(&list)], flags].concat())
    };
    let ran = run("# ours\n\ntest_gather_1  removes its output\n", &["-v"]);
    assert_eq!((ran.code, ran.last()), (Some(0), "1 passed (1 bit by bit), 0 failed, 1 xfail, 0 unsupported"));
    let line = "/test_gather_1: removes its output: test_data_set_0: the engine gives no output_0.pb";
    assert!(ran.out.starts_with("xfail ") && ran.out.lines().next().unwrap().ends_with(line), "{ran:?}");
    let json = run("node/*_1 why\n", &["--json"]);
    let document: Value = serde_json::from_str(&json.out).unwrap();
    let case = &document["cases"][1];
    assert_eq!((document["xfail"].as_u64(), case["outcome"].as_str()), (Some(1), Some("xfail")));
    assert_eq!(case["expected"].as_str(), Some("why"));
    assert_eq!(case["reason"].as_str(), Some("test_data_set_0: the engine gives no output_0.pb"));

    // An entry that says too much fails the run.
    let stale = |text: &str, why: &str| {
        let ran = run(text, &[]);
        let error = format!("error: --xfail {}:{why}\n", path(&list));
        assert_eq!((ran.code, ran.err.as_str(), ran.last().contains("0 failed, 1 xfail")), (Some(1), &*error, true));
    };
    let passes = format!("{}/test_gather_0 passes", path(&data(CASES)));
    stale("test_gather_? why", &format!("1: \"test_gather_?\" is stale: {passes}"));
    stale("*_1 why\n*_7 why", "2: \"*_7\" is stale: matches no case");
    // What -k leaves out isn't stale.
    assert_eq!(run("test_gather_1 why\ntest_gather_elements_0 why", &[]).code, Some(0));

    let wrong = run("test_gather_0 why\ntest_gather_1 \n", &[]);
    let why = format!("error: --xfail {}:2: \"test_gather_1\" needs a reason after the name\n", path(&list));
    assert_eq!((wrong.code, wrong.err), (Some(2), why));
    assert_eq!(script.test("test_gather_0", &["--xfail", "no/such/file"]).code, Some(2));
}

#[test]
fn a_report_has_distances_and_expected_failures() {
    let folder = TempDir::new().unwrap();
    let (list, report) = (folder.path().join("xfail.txt"), folder.path().join("report.xml"));
    fs::write(&list, "test_gather_1 why\n").unwrap();
    let script = after_onnxref("case $1 in *gather_1*) exit 1;; esac");
    let ran = script.test("test_gather_[01]", &["--xfail", path(&list), "--junit", path(&report)]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = fs::read_to_string(report).unwrap();
    assert!(text.contains("<property name=\"ulps\" value=\"0\"/>"), "{text}");
    let skipped = "<skipped message=\"why: test_data_set_0: the engine ended with exit status: 1\" type=\"xfail\"/>";
    assert!(text.contains(skipped), "{text}");
}

#[test]
fn a_summary_by_operator() {
    let script = after_onnxref("case $1 in *gather_1*) rm $3/*;; *elements*) exit 77;; esac");
    let table = "\
Why cases can't run, and how many:
     3  the engine doesn't say why
operator           passed  bit by bit  failed  xfail  unsupported  ulp
Gather-13               3           3       1      0            0    0
GatherElements-13       0           0       0      0            3    0
GatherND-13             3           3       0      0            0    0
6 passed (6 bit by bit), 1 failed, 3 unsupported
";
    let ran = script.test("test_.*", &["--by-operator"]);
    assert_eq!((ran.code, ran.out.split_once('\n').unwrap().1), (Some(1), table));
    let ran = script.test("test_.*", &["--by-operator", "--json"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["cases"][0]["operator"], json!("Gather-13"));
    let gather = json!({
        "operator": "Gather-13", "passed": 3, "exact": 3, "failed": 1, "xfail": 0, "refused": 0, "unsupported": 0, "ulps": 0,
    });
    assert_eq!((&document["operators"][0], document["operators"].as_array().unwrap().len()), (&gather, 3));
    // This runtime has a summary too. Graphs with several operators are counted together.
    let networks = data("small-networks.tar.xz");
    let ran = onnxref(["test", path(&networks), "-k", "bert.legacy17", "--by-operator"]);
    assert!(ran.out.contains("\n(several)       1           0       0      0            0   "), "{ran:?}");
}

#[test]
fn cases_that_must_be_refused() {
    let folder = TempDir::new().unwrap();
    let set = folder.path().join("bad/test_data_set_0");
    fs::create_dir_all(&set).unwrap();
    fs::write(folder.path().join("bad/model.onnx"), "no model").unwrap();
    fs::write(set.join("expected_error.json"), "{}").unwrap();
    let run = |flag: &str, command: &str| {
        let ran = onnxref(["test", path(folder.path()), flag, command, "--timeout", "1"]);
        ran.out.lines().next().unwrap().split(": ").skip(1).collect::<Vec<_>>().join(": ")
    };
    let once = |text: &str| run("--engine", &Script::new(text).command());
    let passed = onnxref(["test", path(folder.path()), "--engine", &Script::new("exit 3").command()]);
    assert_eq!((passed.code, passed.last()), (Some(0), "1 passed (1 bit by bit), 0 failed, 0 unsupported"));
    assert_eq!(once("true"), "test_data_set_0: it must be refused, but it runs");
    assert!(once("kill -ABRT $$").starts_with("test_data_set_0: the engine ended with signal: 6"));
    assert!(once("sleep 9").ends_with("it took longer than --timeout allows"));
    let lines = |text: &str| run("--engine-lines", &for_each_line(text).file("engine"));
    assert_eq!(lines("echo failed no model"), "");
    assert_eq!(lines("echo ok"), "test_data_set_0: it must be refused, but it runs");
    // A process that ends while it should answer doesn't refuse.
    assert_eq!(lines("exit 3"), "test_data_set_0: the engine ended with exit status: 3");
}

/// The commands of the guide print what it shows, each block where those before have left files and variables.
#[test]
fn the_guide_is_true() {
    let repository = data("..").canonicalize().unwrap();
    let text = fs::read_to_string(repository.join("docs/guides/test_engine.md")).unwrap();
    let blocks = |language: &str| {
        let block = |rest: &str| rest.split_once("\n```").unwrap().0.to_string() + "\n";
        text.split(&format!("```{language}\n")).skip(1).map(block).collect::<Vec<_>>()
    };
    let (commands, shown) = (blocks("sh"), blocks("text"));
    assert_eq!((commands.len(), shown.len()), (6, 6));
    let (folder, end) = (TempDir::new().unwrap(), "\n=== end of a block\n");
    let script: String = commands.iter().map(|block| format!("{block}printf '{end}'\n")).collect();
    let programs = Path::new(ONNXREF).parent().unwrap();
    let path = format!("{}:{}", path(programs), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &script]).current_dir(folder.path()).env("REPO", &repository).env("PATH", &path);
    let output = shell.output().unwrap();
    let nodes = format!("{}/onnx-test-data/onnx-1.23.2-node.tar.xz/node", repository.display());
    let printed = String::from_utf8(output.stdout).unwrap().replace(&nodes, "..");
    let errors = String::from_utf8(output.stderr).unwrap();
    let printed: Vec<&str> = printed.split_terminator(end).collect();
    assert_eq!(printed.len(), shown.len(), "{printed:?} {errors}");
    for (printed, shown) in printed.iter().zip(&shown) {
        match shown.strip_prefix("..\n") {
            Some(last) => assert!(printed.ends_with(last), "{printed}"),
            None => assert_eq!(printed, shown),
        }
    }
}
