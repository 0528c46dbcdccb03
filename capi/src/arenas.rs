//! Arenas and allocators that sessions share. They change speed and memory only: they are accepted, and not used.

use crate::crossing::{Allocator, Change, Handle, In, Out, Raw, Result, Text, entries, releases};
use crate::failure::Failure;
use crate::memory::{self, MemoryInfo};
use crate::pairs::Pairs;
use onnxref::quote;
use ort_sys::{OrtAllocator, OrtArenaCfg, OrtEnv, OrtKeyValuePairs, OrtMemoryInfo};
use std::ffi::c_char;

/// It holds nothing.
impl Handle for OrtArenaCfg {
    type Value = ();
}

releases!(ReleaseArenaCfg: OrtArenaCfg);

/// What an arena may be told.
const KEYS: [&str; 7] = [
    "max_mem",
    "arena_extend_strategy",
    "initial_chunk_size_bytes",
    "max_dead_bytes_per_chunk",
    "initial_growth_chunk_size_bytes",
    "max_power_of_two_extend_bytes",
    "use_cuda_mempool",
];

/// Fails if there is no such execution provider.
fn check_provider(name: &str) -> Result<()> {
    if name == "CPUExecutionProvider" {
        return Ok(());
    }
    Err(Failure::missing(format!("there is no {}: onnxref has CPUExecutionProvider only", quote(name))))
}

entries! {
    fn CreateArenaCfg(most: usize, strategy: i32, first: i32, dead: i32, out: Out<*mut OrtArenaCfg>) {
        out.give(());
        Ok(())
    }

    fn CreateArenaCfgV2(
        keys: Raw<*const *const c_char>, values: Raw<*const usize>, count: usize, out: Out<*mut OrtArenaCfg>,
    ) lists(keys[count], values[count]) {
        if let Some(key) = keys.texts("keys")?.iter().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(Failure::argument(format!("an arena has no {}: it has {}", quote(key), KEYS.join(", "))));
        }
        out.give(());
        Ok(())
    }

    fn CreateAndRegisterAllocator(env: Change<OrtEnv>, info: In<OrtMemoryInfo>, arena: Raw<*const OrtArenaCfg>) {
        Ok(())
    }

    fn CreateAndRegisterAllocatorV2(
        env: Change<OrtEnv>, provider: Text, info: In<OrtMemoryInfo>, arena: Raw<*const OrtArenaCfg>,
        keys: Raw<*const *const c_char>, values: Raw<*const *const c_char>, count: usize,
    ) {
        check_provider(&provider)
    }

    fn RegisterAllocator(env: Change<OrtEnv>, allocator: Allocator) {
        Ok(())
    }

    fn UnregisterAllocator(env: Change<OrtEnv>, info: In<OrtMemoryInfo>) {
        Ok(())
    }

    fn GetSharedAllocator(env: Change<OrtEnv>, info: In<OrtMemoryInfo>, out: Out<*mut OrtAllocator>) {
        out.set(memory::allocator());
        Ok(())
    }

    /// Nothing is counted.
    fn AllocatorGetStats(allocator: Raw<*const OrtAllocator>, out: Out<*mut OrtKeyValuePairs>) {
        out.give(Pairs::default());
        Ok(())
    }

    /// A device of type 0 is the CPU, whatever its name.
    fn CreateMemoryInfo_V2(
        name: Text, device: i32, vendor: u32, id: i32, use_of_it: i32, alignment: usize, kind: i32,
        out: Out<*mut OrtMemoryInfo>,
    ) {
        if device != 0 {
            return Err(Failure::missing(format!("there is no device of type {device}: onnxref computes on the CPU, type 0")));
        }
        out.give(MemoryInfo::of_device(&name, kind, id)?);
        Ok(())
    }
}
