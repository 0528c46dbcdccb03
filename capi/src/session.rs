//! Sessions: loading a model, what it takes and gives, and runs.

use crate::copying;
use crate::crossing::{Allocator, Bytes, Change, FilePath, Handle, In, Out, Raw, Result, Space, entries, releases};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::memory::MemoryInfo;
use crate::options::{RunOptions, SessionOptions};
use crate::types::TypeInfo;
use crate::value::{self, Content, Held};
use onnxref::{Cancel, Inputs, Model, Value, ValueInfo, quote};
use ort_sys::{
    OrtEnv, OrtMemoryInfo, OrtPrepackedWeightsContainer, OrtRunOptions, OrtSession, OrtSessionOptions, OrtTypeInfo,
    OrtValue,
};
use std::ffi::c_char;

/// A model, with its inputs as the API has them: those that must be fed, and those that have an initializer.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) model: Model,
    inputs: Vec<ValueInfo>,
    /// Inputs that may be fed instead of their initializer.
    overridable: Vec<ValueInfo>,
    outputs: Vec<ValueInfo>,
}

impl From<Model> for Session {
    fn from(model: Model) -> Session {
        let (with, without): (Vec<_>, Vec<_>) =
            model.inputs().cloned().partition(|input| model.has_default(&input.name));
        // Before version 4 every initializer was an input, and none was meant to be fed.
        let overridable = if model.ir_version() >= 4 { with } else { Vec::new() };
        Session { inputs: without, overridable, outputs: model.outputs().cloned().collect(), model }
    }
}

impl Session {
    fn load(
        environment: &Environment,
        options: Option<&SessionOptions>,
        load: impl FnOnce(onnxref::LoadOptions) -> onnxref::Result<Model>,
    ) -> Result<Session> {
        let defaults = SessionOptions::default();
        let options = options.unwrap_or(&defaults).loading(environment)?;
        Ok(load(options)?.into())
    }

    fn read(environment: &Environment, options: Option<&SessionOptions>, file: &[u8]) -> Result<Session> {
        if !copying::is_ort(file) {
            return Session::load(environment, options, |options| options.from_bytes(file.to_vec()));
        }
        let Some(model) = copying::identity(file) else {
            return Err(Failure::missing("the model has onnxruntime's own format: onnxref reads ONNX"));
        };
        Session::load(environment, options, |options| options.from_bytes(model))
    }

    /// What is fed, by name.
    pub(crate) fn feed(&self, name: String, held: &Held) -> Result<(String, Value)> {
        let value = held.value().map_err(|failure| failure.within(&format!("input {}", quote(&name))))?;
        let info = self.model.inputs().find(|input| input.name == name);
        Ok((name, value::declared(value, info.and_then(|info| info.value_type.as_ref()))))
    }

    /// Fails if the model has no such input.
    pub(crate) fn check_input(&self, name: &str) -> Result<()> {
        let all = || self.inputs.iter().chain(&self.overridable).map(|input| &input.name);
        if all().any(|input| input == name) {
            return Ok(());
        }
        let names: Vec<String> = all().map(|input| quote(input)).collect();
        let which =
            if names.is_empty() { "the model has none".into() } else { format!("the inputs are {}", names.join(", ")) };
        Err(Failure::argument(format!("there is no input {}: {which}", quote(name))))
    }

    /// Fails if the model has no such output.
    pub(crate) fn check_output(&self, name: &str) -> Result<()> {
        if self.outputs.iter().any(|output| output.name == name) {
            return Ok(());
        }
        let all: Vec<String> = self.outputs.iter().map(|output| quote(&output.name)).collect();
        Err(Failure::argument(format!("there is no output {}: the outputs are {}", quote(name), all.join(", "))))
    }

    /// The outputs of these names.
    pub(crate) fn run(&self, feeds: &[(String, Value)], wanted: &[String], cancel: &Cancel) -> Result<Vec<Value>> {
        wanted.iter().try_for_each(|name| self.check_output(name))?;
        let inputs: Inputs<'_> = feeds.iter().map(|(name, value)| (&**name, value)).collect();
        let mut outputs = self.model.run_with(inputs, cancel)?;
        let mut values = Vec::with_capacity(wanted.len());
        for (k, name) in wanted.iter().enumerate() {
            // A name may be asked for twice.
            let again = wanted.iter().skip(k + 1).any(|other| other == name);
            let value = match outputs.get(name) {
                Some(value) if again => value.clone(),
                _ => outputs.take_value(name)?,
            };
            values.push(value);
        }
        Ok(values)
    }
}

/// What ends a run.
fn cancel(options: Option<&RunOptions>) -> Cancel {
    options.map_or_else(Cancel::new, RunOptions::cancel)
}

impl Handle for OrtSession {
    type Value = Session;
}

releases!(ReleaseSession: OrtSession);

/// The value at a position.
fn at(values: &[ValueInfo], index: usize) -> Result<&ValueInfo> {
    let count = values.len();
    values
        .get(index)
        .ok_or_else(|| Failure::argument(format!("there is no position {index} of {count}, which count from 0")))
}

entries! {
    fn CreateSession(
        env: In<OrtEnv>, path: FilePath, options: Option<In<OrtSessionOptions>>, out: Out<*mut OrtSession>,
    ) {
        out.give(Session::load(&env, options.as_deref(), |options| options.load(path))?);
        Ok(())
    }

    fn CreateSessionFromArray(
        env: In<OrtEnv>, data: Bytes, bytes: usize, options: Option<In<OrtSessionOptions>>, out: Out<*mut OrtSession>,
    ) lists(data[bytes]) {
        out.give(Session::read(&env, options.as_deref(), &data)?);
        Ok(())
    }

    fn CreateSessionWithPrepackedWeightsContainer(
        env: In<OrtEnv>, path: FilePath, options: Option<In<OrtSessionOptions>>,
        container: Change<OrtPrepackedWeightsContainer>, out: Out<*mut OrtSession>,
    ) {
        out.give(Session::load(&env, options.as_deref(), |options| options.load(path))?);
        Ok(())
    }

    fn CreateSessionFromArrayWithPrepackedWeightsContainer(
        env: In<OrtEnv>, data: Bytes, bytes: usize, options: Option<In<OrtSessionOptions>>,
        container: Change<OrtPrepackedWeightsContainer>, out: Out<*mut OrtSession>,
    ) lists(data[bytes]) {
        out.give(Session::read(&env, options.as_deref(), &data)?);
        Ok(())
    }

    fn SessionGetInputCount(session: In<OrtSession>, out: Out<usize>) {
        out.set(session.inputs.len());
        Ok(())
    }

    fn SessionGetOutputCount(session: In<OrtSession>, out: Out<usize>) {
        out.set(session.outputs.len());
        Ok(())
    }

    fn SessionGetOverridableInitializerCount(session: In<OrtSession>, out: Out<usize>) {
        out.set(session.overridable.len());
        Ok(())
    }

    fn SessionGetInputName(session: In<OrtSession>, index: usize, allocator: Allocator, out: Out<*mut c_char>) {
        out.set(allocator.text(&at(&session.inputs, index)?.name)?);
        Ok(())
    }

    fn SessionGetOutputName(session: In<OrtSession>, index: usize, allocator: Allocator, out: Out<*mut c_char>) {
        out.set(allocator.text(&at(&session.outputs, index)?.name)?);
        Ok(())
    }

    fn SessionGetOverridableInitializerName(
        session: In<OrtSession>, index: usize, allocator: Allocator, out: Out<*mut c_char>,
    ) {
        out.set(allocator.text(&at(&session.overridable, index)?.name)?);
        Ok(())
    }

    fn SessionGetInputTypeInfo(session: In<OrtSession>, index: usize, out: Out<*mut OrtTypeInfo>) {
        out.give(TypeInfo::declared(at(&session.inputs, index)?));
        Ok(())
    }

    fn SessionGetOutputTypeInfo(session: In<OrtSession>, index: usize, out: Out<*mut OrtTypeInfo>) {
        out.give(TypeInfo::declared(at(&session.outputs, index)?));
        Ok(())
    }

    fn SessionGetOverridableInitializerTypeInfo(session: In<OrtSession>, index: usize, out: Out<*mut OrtTypeInfo>) {
        out.give(TypeInfo::declared(at(&session.overridable, index)?));
        Ok(())
    }

    fn Run(
        session: Change<OrtSession>, options: Option<In<OrtRunOptions>>, names: Raw<*const *const c_char>,
        values: Raw<*const *const OrtValue>, count: usize, wanted: Raw<*const *const c_char>, wanted_count: usize,
        outputs: Raw<*mut *mut OrtValue>,
    ) lists(names[count], values[count], wanted[wanted_count], outputs[wanted_count]) {
        let call = RunCall::new(&session, options.as_deref(), names.texts("names")?, &values.values()?, wanted.texts("wanted")?)?;
        let given = call.run(&outputs.present().iter().map(|value| value.as_deref().cloned()).collect::<Vec<_>>())?;
        outputs.fill_missing(given);
        Ok(())
    }

    /// Runs on a thread of its own.
    fn RunAsync(
        session: Change<OrtSession>, options: Option<In<OrtRunOptions>>, names: Raw<*const *const c_char>,
        values: Raw<*const *const OrtValue>, count: usize, wanted: Raw<*const *const c_char>, wanted_count: usize,
        outputs: Raw<*mut *mut OrtValue>, callback: Raw<ort_sys::RunAsyncCallbackFn>, context: Space,
    ) lists(names[count], values[count], wanted[wanted_count], outputs[wanted_count]) {
        if callback.is_none() {
            return Err(Failure::argument("the argument callback is null"));
        }
        let call = RunCall::new(&session, options.as_deref(), names.texts("names")?, &values.values()?, wanted.texts("wanted")?)?;
        let present: Vec<_> = outputs.present().iter().map(|value| value.as_deref().cloned()).collect();
        crate::crossing::answer_later(outputs, callback, context, move || call.run(&present))
    }

    fn SessionGetMemoryInfoForInputs(
        session: In<OrtSession>, out: Raw<*mut *const OrtMemoryInfo>, count: usize,
    ) lists(out[count]) {
        out.fill((0..count).map(|_| MemoryInfo::shown()));
        Ok(())
    }

    fn SessionGetMemoryInfoForOutputs(
        session: In<OrtSession>, out: Raw<*mut *const OrtMemoryInfo>, count: usize,
    ) lists(out[count]) {
        out.fill((0..count).map(|_| MemoryInfo::shown()));
        Ok(())
    }

    fn SessionGetModelMetadata(session: In<OrtSession>, out: Out<*mut ort_sys::OrtModelMetadata>) {
        out.give(session.model.clone());
        Ok(())
    }
}

/// A run that can start: it shares nothing with the program.
struct RunCall {
    session: Session,
    feeds: Vec<(String, Value)>,
    wanted: Vec<String>,
    cancel: Cancel,
}

impl RunCall {
    fn new(
        session: &Session,
        options: Option<&RunOptions>,
        names: Vec<String>,
        values: &[In<OrtValue>],
        wanted: Vec<String>,
    ) -> Result<RunCall> {
        let feeds: Result<Vec<_>> =
            names.into_iter().zip(values).map(|(name, value)| session.feed(name, value)).collect();
        Ok(RunCall { session: session.clone(), feeds: feeds?, wanted, cancel: cancel(options) })
    }

    /// The outputs; `None` for one that was written over a value which the program gave for it.
    fn run(&self, present: &[Option<Held>]) -> Result<Vec<Option<Held>>> {
        let values = self.session.run(&self.feeds, &self.wanted, &self.cancel)?;
        let given = values.into_iter().zip(&self.wanted).zip(present).map(|((value, name), present)| match present {
            Some(held) => held.overwrite(&format!("output {}", quote(name)), value).map(|()| None),
            None => Ok(Some(Content::of(value)?.into())),
        });
        given.collect()
    }
}
