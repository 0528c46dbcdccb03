//! Bounds what is written: by `--limit output_bytes`, by the time of a run, and by an interruption.

use crate::failure::Failure;
use crate::interrupt;
use crate::print::path;
use onnxref::{Cancel, Error, Kind};
use std::error::Error as _;
use std::fmt::{self, Display};
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of the limit on the bytes that are written, in files and in JSON.
pub(crate) const OUTPUT_BYTES: &str = "output_bytes";

/// More than the outputs that the default limits of a run allow, as JSON.
const DEFAULT: u64 = 64 << 30;

static LIMIT: AtomicU64 = AtomicU64::new(DEFAULT);

static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// The size of the pieces in which files are written.
const PIECE: usize = 1 << 20;

/// Begins with the default limit, and nothing written.
pub(crate) fn start() {
    allow(DEFAULT);
    WRITTEN.store(0, Ordering::Relaxed);
}

/// Sets the limit.
pub(crate) fn allow(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Counts bytes before they are written. Fails once they are more than the limit.
pub(crate) fn count(bytes: usize) -> io::Result<()> {
    let (bytes, limit) = (bytes as u64, LIMIT.load(Ordering::Relaxed));
    let written = WRITTEN.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    if written > limit { Err(io::Error::other(Ended::Limit(limit))) } else { Ok(()) }
}

/// Fails once the time is up; goes no further after an interruption.
pub(crate) fn look(cancel: &Cancel) -> io::Result<()> {
    interrupt::point();
    if cancel.is_cancelled() { Err(io::Error::other(Ended::Time)) } else { Ok(()) }
}

/// Writes until it is too much, or the time is up.
///
/// It does so piece by piece. The system removes a file only when no write to it is under way, so an interruption would
/// wait for all of a large one.
pub(crate) struct Bounded<'a, W> {
    to: W,
    cancel: &'a Cancel,
}

impl<'a, W> Bounded<'a, W> {
    pub(crate) fn new(to: W, cancel: &'a Cancel) -> Bounded<'a, W> {
        Bounded { to, cancel }
    }
}

impl<W: Write> Write for Bounded<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        look(self.cancel)?;
        let piece = bytes.get(..PIECE).unwrap_or(bytes);
        count(piece.len())?;
        self.to.write_all(piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        look(self.cancel)?;
        self.to.flush()
    }
}

impl<W: Seek> Seek for Bounded<'_, W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.to.seek(to)
    }
}

/// Why writing ended early.
#[derive(Debug, Clone, Copy)]
enum Ended {
    Limit(u64),
    Time,
}

impl Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Limit(limit) => write!(f, "more than {limit} bytes would be written"),
            Ended::Time => f.write_str("the time was up while it was written"),
        }
    }
}

impl std::error::Error for Ended {}

/// Error for a file, or other place, that can't be written.
pub(crate) fn error(place: &str, error: io::Error) -> Error {
    let text = format!("{}: {error}", path(place));
    match error.get_ref().and_then(|source| source.downcast_ref()) {
        Some(Ended::Limit(_)) => Error::new(Kind::Limit, text).at(|place| place.limit = Some(OUTPUT_BYTES)),
        Some(Ended::Time) => Error::new(Kind::Cancelled, text),
        None => Error::new(Kind::Io, text).caused_by(error),
    }
}

/// The same error again.
fn again(error: &io::Error) -> io::Error {
    match (error.get_ref().and_then(|source| source.downcast_ref::<Ended>()), error.raw_os_error()) {
        (Some(ended), _) => io::Error::other(*ended),
        (None, Some(code)) => io::Error::from_raw_os_error(code),
        (None, None) => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Why a value isn't written.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// The format can't hold it.
    Unfit(String),
    Failed(io::Error),
}

impl Unwritten {
    /// Why the library didn't write a message.
    pub(crate) fn of(error: Error) -> Unwritten {
        match error.source().and_then(|source| source.downcast_ref()) {
            Some(source) => Unwritten::Failed(again(source)),
            None => Unwritten::Unfit(format!("{error:#}")),
        }
    }

    /// The failure of what is written to a place: `text` tells why a value doesn't fit.
    pub(crate) fn failure(self, place: &str, text: impl FnOnce(String) -> String) -> Failure {
        match self {
            Unwritten::Unfit(why) => Failure::usage(text(why)),
            Unwritten::Failed(failed) => Failure::run(error(place, failed)),
        }
    }

    /// Changes the text of a value that doesn't fit.
    pub(crate) fn if_unfit(self, change: impl FnOnce(String) -> String) -> Unwritten {
        match self {
            Unwritten::Unfit(why) => Unwritten::Unfit(change(why)),
            failed => failed,
        }
    }
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Unwritten {
        Unwritten::Failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_in_pieces() {
        struct Sizes(Vec<usize>);
        impl Write for Sizes {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.push(bytes.len());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let cancel = Cancel::new();
        let mut sizes = Bounded::new(Sizes(Vec::new()), &cancel);
        sizes.write_all(&[1; 80]).unwrap();
        sizes.write_all(&vec![2; 2 * PIECE + 5]).unwrap();
        assert_eq!(sizes.to.0, [80, PIECE, PIECE, 5]);
        cancel.cancel();
        let ended = error("y.pb", sizes.write_all(&[1]).unwrap_err());
        assert_eq!(
            (ended.kind(), ended.to_string().as_str()),
            (Kind::Cancelled, "y.pb: the time was up while it was written")
        );
    }
}
