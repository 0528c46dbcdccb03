//! The environment, its threads, and what the library says of itself.

use crate::crossing::{Change, Handle, In, Out, Raw, Result, Space, Text, entries, other_entries, releases};
use crate::failure::Failure;
use ort_sys::{OrtEnv, OrtPrepackedWeightsContainer, OrtThreadingOptions};
use std::ffi::c_char;
use std::sync::atomic::AtomicPtr;

/// What sessions have in common: how many threads those use that ask for the environment's.
#[derive(Default)]
pub(crate) struct Environment {
    pub(crate) threads: Option<usize>,
}

#[derive(Default)]
pub(crate) struct Threading {
    threads: Option<usize>,
}

impl Handle for OrtEnv {
    type Value = Environment;
}

impl Handle for OrtThreadingOptions {
    type Value = Threading;
}

/// It holds nothing: constants are packed for each session.
impl Handle for OrtPrepackedWeightsContainer {
    type Value = ();
}

releases! {
    ReleaseEnv: OrtEnv,
    ReleaseThreadingOptions: OrtThreadingOptions,
    ReleasePrepackedWeightsContainer: OrtPrepackedWeightsContainer,
}

/// A number of threads; 0 leaves it to the library.
pub(crate) fn thread_count(given: i32) -> Result<Option<usize>> {
    match usize::try_from(given) {
        Ok(0) => Ok(None),
        Ok(count) => Ok(Some(count)),
        Err(_) => Err(Failure::argument(format!("{given} is not a number of threads; 0 leaves it to the library"))),
    }
}

/// A function that gets what is logged. Nothing is: errors have the whole text.
type Logger = Raw<ort_sys::OrtLoggingFunction>;

entries! {
    fn CreateEnv(level: i32, log_id: Raw<*const c_char>, out: Out<*mut OrtEnv>) {
        out.give(Environment::default());
        Ok(())
    }

    fn CreateEnvWithCustomLogger(
        logger: Logger, context: Space, level: i32, log_id: Raw<*const c_char>, out: Out<*mut OrtEnv>,
    ) {
        out.give(Environment::default());
        Ok(())
    }

    fn CreateEnvWithGlobalThreadPools(
        level: i32, log_id: Raw<*const c_char>, threading: In<OrtThreadingOptions>, out: Out<*mut OrtEnv>,
    ) {
        out.give(Environment { threads: threading.threads });
        Ok(())
    }

    fn CreateEnvWithCustomLoggerAndGlobalThreadPools(
        logger: Logger, context: Space, level: i32, log_id: Raw<*const c_char>, threading: In<OrtThreadingOptions>,
        out: Out<*mut OrtEnv>,
    ) {
        out.give(Environment { threads: threading.threads });
        Ok(())
    }

    fn EnableTelemetryEvents(env: In<OrtEnv>) {
        Ok(())
    }

    fn DisableTelemetryEvents(env: In<OrtEnv>) {
        Ok(())
    }

    fn UpdateEnvWithCustomLogLevel(env: Change<OrtEnv>, level: i32) {
        Ok(())
    }

    fn SetLanguageProjection(env: In<OrtEnv>, language: i32) {
        Ok(())
    }

    fn CreateThreadingOptions(out: Out<*mut OrtThreadingOptions>) {
        out.give(Threading::default());
        Ok(())
    }

    fn SetGlobalIntraOpNumThreads(options: Change<OrtThreadingOptions>, threads: i32) {
        options.threads = thread_count(threads)?;
        Ok(())
    }

    /// Nodes run one after the other.
    fn SetGlobalInterOpNumThreads(options: Change<OrtThreadingOptions>, threads: i32) {
        thread_count(threads).map(drop)
    }

    fn SetGlobalSpinControl(options: Change<OrtThreadingOptions>, spin: i32) {
        Ok(())
    }

    fn SetGlobalIntraOpThreadAffinity(options: Change<OrtThreadingOptions>, affinity: Text) {
        Ok(())
    }

    fn CreatePrepackedWeightsContainer(out: Out<*mut OrtPrepackedWeightsContainer>) {
        out.give(());
        Ok(())
    }

    fn GetAvailableProviders(out: Out<*mut *mut c_char>, count: Out<i32>) {
        out.set(PROVIDERS.as_ptr().cast_mut().cast());
        count.set(1);
        Ok(())
    }

    /// They stay.
    fn ReleaseAvailableProviders(names: Raw<*mut *mut c_char>, count: i32) {
        Ok(())
    }
}

/// As onnxruntime names it. An `AtomicPtr` is a pointer that threads may share.
static PROVIDERS: [AtomicPtr<c_char>; 1] = [AtomicPtr::new(c"CPUExecutionProvider".as_ptr().cast_mut())];

other_entries! {
    fn GetBuildInfoString() -> *const c_char, c"".as_ptr(), {
        concat!("onnxref ", env!("CARGO_PKG_VERSION"), ", a reference runtime in Rust\0").as_ptr().cast()
    }
}
