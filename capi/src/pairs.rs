//! Lists of keys with values, in which newer functions take and give options.

use crate::crossing::{Change, Handle, In, Out, Text, entries, other_entries, releases};
use crate::options::SessionOptions;
use ort_sys::{OrtKeyValuePairs, OrtSessionOptions};
use std::ffi::{CString, c_char};

#[derive(Default)]
pub(crate) struct Pairs {
    keys: Vec<CString>,
    values: Vec<CString>,
    /// What the program is shown: where these are.
    key_places: Vec<*const c_char>,
    value_places: Vec<*const c_char>,
}

impl Pairs {
    pub(crate) fn set(&mut self, key: String, value: String) {
        self.remove(&key);
        self.keys.push(CString::new(key).unwrap_or_default());
        self.values.push(CString::new(value).unwrap_or_default());
        self.place();
    }

    fn remove(&mut self, key: &str) {
        if let Some(at) = self.position(key) {
            self.keys.remove(at);
            self.values.remove(at);
            self.place();
        }
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.keys.iter().position(|other| other.as_bytes() == key.as_bytes())
    }

    fn place(&mut self) {
        self.key_places = self.keys.iter().map(|key| key.as_ptr()).collect();
        self.value_places = self.values.iter().map(|value| value.as_ptr()).collect();
    }
}

impl Handle for OrtKeyValuePairs {
    type Value = Pairs;
}

releases!(ReleaseKeyValuePairs: OrtKeyValuePairs);

other_entries! {
    fn CreateKeyValuePairs(out: Out<*mut OrtKeyValuePairs>) -> (), (), {
        out.give(Pairs::default());
    }

    fn AddKeyValuePair(pairs: Change<OrtKeyValuePairs>, key: Text, value: Text) -> (), (), {
        pairs.set(key, value);
    }

    fn RemoveKeyValuePair(pairs: Change<OrtKeyValuePairs>, key: Text) -> (), (), {
        pairs.remove(&key);
    }

    fn GetKeyValue(pairs: In<OrtKeyValuePairs>, key: Text) -> *const c_char, std::ptr::null(), {
        pairs.position(&key).and_then(|at| pairs.value_places.get(at).copied()).unwrap_or(std::ptr::null())
    }

    fn GetKeyValuePairs(
        pairs: In<OrtKeyValuePairs>, keys: Out<*const *const c_char>, values: Out<*const *const c_char>, count: Out<usize>,
    ) -> (), (), {
        keys.set(pairs.key_places.as_ptr());
        values.set(pairs.value_places.as_ptr());
        count.set(pairs.keys.len());
    }
}

entries! {
    fn GetSessionOptionsConfigEntries(options: In<OrtSessionOptions>, out: Out<*mut OrtKeyValuePairs>) {
        let mut pairs = Pairs::default();
        SessionOptions::entries(&options).for_each(|(key, value)| pairs.set(key.clone(), value.clone()));
        out.give(pairs);
        Ok(())
    }
}
