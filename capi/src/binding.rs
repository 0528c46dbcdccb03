//! Bindings: inputs and outputs that stay from one run to the next.

use crate::crossing::{Allocator, Change, Handle, In, Out, Result, Text, boxed, entries, other_entries, releases};
use crate::failure::Failure;
use crate::session::Session;
use crate::value::{Content, Held};
use onnxref::Cancel;
use ort_sys::{OrtIoBinding, OrtMemoryInfo, OrtRunOptions, OrtSession, OrtValue};
use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) struct Binding {
    session: Session,
    bound: Mutex<Bound>,
}

#[derive(Default)]
struct Bound {
    inputs: Vec<(String, Held)>,
    outputs: Vec<Output>,
}

struct Output {
    name: String,
    /// The program gave a value, which each run writes over.
    given: bool,
    /// That, or what the last run gave.
    value: Option<Held>,
}

impl Binding {
    fn bound(&self) -> MutexGuard<'_, Bound> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bind_output(&self, output: Output) -> Result<()> {
        self.session.check_output(&output.name)?;
        let outputs = &mut self.bound().outputs;
        match outputs.iter_mut().find(|other| other.name == output.name) {
            Some(other) => *other = output,
            None => outputs.push(output),
        }
        Ok(())
    }

    fn run(&self, session: &Session, cancel: &Cancel) -> Result<()> {
        let mut bound = self.bound();
        let feeds: Result<Vec<_>> = bound.inputs.iter().map(|(name, held)| session.feed(name.clone(), held)).collect();
        let wanted: Vec<String> = bound.outputs.iter().map(|output| output.name.clone()).collect();
        let values = session.run(&feeds?, &wanted, cancel)?;
        for (output, value) in bound.outputs.iter_mut().zip(values) {
            match &output.value {
                Some(held) if output.given => {
                    held.overwrite(&format!("output {}", onnxref::quote(&output.name)), value)?
                }
                _ => output.value = Some(Content::of(value)?.into()),
            }
        }
        Ok(())
    }
}

impl Handle for OrtIoBinding {
    type Value = Binding;
}

releases!(ReleaseIoBinding: OrtIoBinding);

entries! {
    fn CreateIoBinding(session: Change<OrtSession>, out: Out<*mut OrtIoBinding>) {
        out.give(Binding { session: session.clone(), bound: Mutex::default() });
        Ok(())
    }

    fn BindInput(binding: Change<OrtIoBinding>, name: Text, value: In<OrtValue>) {
        binding.session.check_input(&name)?;
        let inputs = &mut binding.bound().inputs;
        match inputs.iter_mut().find(|(other, _)| *other == name) {
            Some((_, other)) => *other = (*value).clone(),
            None => inputs.push((name, (*value).clone())),
        }
        Ok(())
    }

    fn BindOutput(binding: Change<OrtIoBinding>, name: Text, value: In<OrtValue>) {
        binding.bind_output(Output { name, given: true, value: Some((*value).clone()) })
    }

    fn BindOutputToDevice(binding: Change<OrtIoBinding>, name: Text, info: In<OrtMemoryInfo>) {
        binding.bind_output(Output { name, given: false, value: None })
    }

    fn RunWithBinding(session: Change<OrtSession>, options: Option<In<OrtRunOptions>>, binding: In<OrtIoBinding>) {
        binding.run(&session, &options.as_deref().map_or_else(Cancel::new, |options| options.cancel()))
    }

    fn SynchronizeBoundInputs(binding: Change<OrtIoBinding>) {
        Ok(())
    }

    fn SynchronizeBoundOutputs(binding: Change<OrtIoBinding>) {
        Ok(())
    }

    /// The names one after the other, and how many bytes each has.
    fn GetBoundOutputNames(
        binding: In<OrtIoBinding>, allocator: Allocator, names: Out<*mut c_char>, lengths: Out<*mut usize>,
        count: Out<usize>,
    ) {
        let bound = binding.bound();
        let all: Vec<&str> = bound.outputs.iter().map(|output| &*output.name).collect();
        count.set(all.len());
        if all.is_empty() {
            names.set(std::ptr::null_mut());
            lengths.set(std::ptr::null_mut());
            return Ok(());
        }
        names.set(allocator.copy(all.concat().as_bytes())?.cast());
        lengths.set(allocator.copy(&all.iter().map(|name| name.len()).collect::<Vec<_>>())?);
        Ok(())
    }

    fn GetBoundOutputValues(
        binding: In<OrtIoBinding>, allocator: Allocator, out: Out<*mut *mut OrtValue>, count: Out<usize>,
    ) {
        let bound = binding.bound();
        let values: Option<Vec<Held>> = bound.outputs.iter().map(|output| output.value.clone()).collect();
        let values = values.ok_or_else(|| Failure::argument("the binding has no outputs yet: call RunWithBinding first"))?;
        // Memory first: handles that nobody gets would leak.
        count.set(values.len());
        out.set(allocator.collect(values.into_iter().map(boxed))?);
        Ok(())
    }
}

other_entries! {
    fn ClearBoundInputs(binding: Change<OrtIoBinding>) -> (), (), {
        binding.bound().inputs.clear();
    }

    fn ClearBoundOutputs(binding: Change<OrtIoBinding>) -> (), (), {
        binding.bound().outputs.clear();
    }
}
