//! The location of a tensor's external data.

use crate::error::{Error, Result, quote};
use crate::files::ModelFiles;
use bytes::Bytes;
use std::collections::HashSet;

/// Where the elements of a tensor are in another file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct External {
    /// The file, relative to the folder of the model.
    pub location: String,
    /// Where they begin.
    pub offset: u64,
    /// The number of bytes, if it is given.
    pub length: Option<u64>,
}

impl External {
    pub(crate) fn parse(pairs: &[(&str, &str)]) -> Result<External> {
        let mut seen: HashSet<&str> = HashSet::new();
        let (mut location, mut offset, mut length) = (None, 0, None);
        for (key, value) in pairs {
            if !seen.insert(key) {
                return Err(Error::model(format!("its external data has two entries {}", quote(key))));
            }
            match *key {
                "location" => location = Some(value.to_string()),
                "offset" => offset = decimal(key, value)?,
                "length" => length = Some(decimal(key, value)?),
                // `checksum`, and keys of writers' own.
                _ => {}
            }
        }
        let location = location.ok_or_else(|| Error::model("its external data has no location"))?;
        Ok(External { location, offset, length })
    }

    /// Reads the `need` bytes of the tensor.
    pub(super) fn read(&self, need: u64, files: &ModelFiles) -> Result<Bytes> {
        self.check_length(need)?;
        files.part(&self.location, self.offset, need)
    }

    /// Fails if another length is given than the tensor's type and shape take.
    pub(crate) fn check_length(&self, need: u64) -> Result<()> {
        match self.length.filter(|length| *length != need) {
            Some(length) => {
                let text = format!("its external data has length {length}: its type and shape take {need}");
                Err(Error::model(text).at(|place| {
                    place.value = Some(length.into());
                    place.size = usize::try_from(need).ok();
                }))
            }
            None => Ok(()),
        }
    }
}

fn decimal(key: &str, value: &str) -> Result<u64> {
    let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    let parsed = if digits { value.parse().ok() } else { None };
    parsed.ok_or_else(|| {
        Error::model(format!("its external data's {key} is {}: a decimal number is needed", quote(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let parse = |pairs: &[(&str, &str)]| External::parse(pairs).map_err(|e| e.to_string());
        let full = parse(&[("location", "a.bin"), ("offset", "8"), ("length", "4"), ("checksum", "x")]);
        assert_eq!(full, Ok(External { location: "a.bin".into(), offset: 8, length: Some(4) }));
        assert_eq!(parse(&[]), Err("its external data has no location".into()));
        assert_eq!(
            parse(&[("location", "a"), ("location", "b")]),
            Err("its external data has two entries \"location\"".into())
        );
        for bad in ["-1", "+1", "", " 1", "1e3", "18446744073709551616"] {
            assert!(parse(&[("location", "a"), ("offset", bad)]).is_err(), "{bad}");
        }
    }
}
