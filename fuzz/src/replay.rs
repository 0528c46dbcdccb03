//! A target without libFuzzer, on stable Rust: known files, and inputs that look random and are always the same.

use crate::{Target, external};
use onnxref::document::Document;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};
use std::{fs, panic, thread};

/// The input of each target that runs, and since when.
static CURRENT: Mutex<BTreeMap<&str, (Instant, Vec<u8>)>> = Mutex::new(BTreeMap::new());

/// An input that takes longer blocks.
const LONGEST: Duration = Duration::from_secs(60);

/// Runs the known inputs of a target, or those of `files`, and `count` others that are made from them and a seed. False: one
/// failed, which is kept in `fuzz/artifacts`. An input that takes too long ends the program.
pub fn replay((name, run): Target, (count, seed): (u64, u64), files: Option<&[PathBuf]>) -> bool {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| drop(thread::spawn(watch)));
    let start = Instant::now();
    let known = match files {
        Some(files) => files.iter().map(|path| fs::read(path).expect("a file that can be read")).collect(),
        None => seeds(name),
    };
    let mut random = Random(name.bytes().fold(seed, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte))));
    let good = known.iter().all(|input| one((name, run), input))
        && (0..count).all(|_| one((name, run), &mutated(&known, &mut random)));
    if name == "external" {
        external::clean();
    }
    if good {
        println!("{name}: {} known inputs and {count} others in {:.1} s", known.len(), start.elapsed().as_secs_f64());
    }
    good
}

fn one((name, run): Target, input: &[u8]) -> bool {
    let current = |input| {
        let mut current = CURRENT.lock().expect("no panic holds it");
        match input {
            Some(input) => current.insert(name, (Instant::now(), input)),
            None => current.remove(name),
        };
    };
    current(Some(input.to_vec()));
    let good = panic::catch_unwind(|| run(input)).is_ok();
    current(None);
    if !good {
        let sum =
            input.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &b| (sum ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts").join(name);
        let path = folder.join(format!("replay-{sum:016x}"));
        let _ = fs::create_dir_all(&folder);
        let kept = fs::write(&path, input).is_ok();
        eprintln!("{name}: an input of {} bytes fails{}", input.len(), if kept { ", kept as" } else { "" });
        eprintln!("{}\n{}", path.display(), hex(input));
    }
    good
}

fn hex(input: &[u8]) -> String {
    input.iter().take(2000).map(|byte| format!("{byte:02x}")).collect()
}

/// Ends the program when an input takes too long.
fn watch() {
    loop {
        thread::sleep(Duration::from_secs(1));
        for (name, (since, input)) in &*CURRENT.lock().expect("no panic holds it") {
            if since.elapsed() > LONGEST {
                eprintln!("{name}: an input of {} bytes takes longer than {LONGEST:?}:\n{}", input.len(), hex(input));
                std::process::exit(1);
            }
        }
    }
}

/// The known inputs of a target: its corpus, if there is one, and files of the test data.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    files(&here.join("corpus").join(name), "", &mut paths);
    let data = here.join("../onnx-test-data");
    match name {
        "load" => {
            files(&data, "onnx", &mut paths);
            files(&here.join("../tests/openvino"), "xml", &mut paths);
        }
        "tensor" => files(&data, "pb", &mut paths),
        "document" | "text" => files(&data, "onnx", &mut paths),
        _ => {}
    }
    paths.sort();
    let mut seeds: Vec<Vec<u8>> = paths.iter().filter_map(|path| fs::read(path).ok()).collect();
    seeds.retain(|seed| seed.len() <= 1 << 16);
    if name == "text" {
        let text = |seed: &Vec<u8>| Some(Document::from_bytes(seed.clone()).ok()?.to_text().ok()?.into_bytes());
        seeds = seeds.iter().filter_map(text).collect();
    }
    seeds
}

/// The files below a folder whose name ends so.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if extension.is_empty() || path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}

/// A known input with some changes, or bytes from nowhere.
fn mutated(known: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    if known.is_empty() || random.below(16) == 0 {
        let len = [64, 256, 1024, 4096][random.below(4)];
        return (0..random.below(len)).map(|_| random.next() as u8).collect();
    }
    let mut bytes = known[random.below(known.len())].clone();
    for _ in 0..1 << random.below(4) {
        let at = random.below(bytes.len() + 1);
        let len = random.below(bytes.len() - at + 1).min(1 << random.below(8));
        match random.below(10) {
            0..3 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            3 if at < bytes.len() => bytes[at] = random.next() as u8,
            4 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, 2, 8, 0x12][random.below(8)],
            5 => bytes.insert(at, random.next() as u8),
            6 => drop(bytes.drain(at..at + len)),
            7 => {
                let copied = bytes[at..at + len].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, copied);
            }
            8 => {
                let other = &known[random.below(known.len())];
                let from = random.below(other.len() + 1);
                let to = from + random.below(other.len() - from + 1).min(64);
                bytes.splice(at..at + len, other[from..to].iter().copied());
            }
            9 if random.below(4) == 0 => bytes.truncate(at),
            _ => {}
        }
    }
    bytes
}

/// Numbers that look random, the same for the same seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
