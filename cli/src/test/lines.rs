//! Engines that stay: a line for each case, and a line back.

use super::process::Process;
use onnxref::{Error, Kind, quote};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum length of an answer.
const MAX_ANSWER: u64 = 64 << 10;

/// How long an engine may take to end once its standard input is closed.
const GRACE: Duration = Duration::from_secs(1);

/// A process that gets requests and gives answers.
pub(super) struct Lines {
    /// `None` closes its standard input.
    requests: Option<Sender<String>>,
    answers: Receiver<io::Result<String>>,
    process: Process,
}

impl Lines {
    pub(super) fn start(mut command: Command) -> io::Result<Lines> {
        let mut process = Process::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let (stdin, stdout) = (process.child.stdin.take(), process.child.stdout.take());
        let (requests, written) = mpsc::channel::<String>();
        let (sender, answers) = mpsc::channel();
        // Writing may wait for ever: the engine need not read.
        thread::Builder::new().spawn(move || {
            let mut stdin = stdin;
            for line in written {
                let sent = stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(line.as_bytes()));
                if sent.is_err() {
                    return;
                }
            }
        })?;
        thread::Builder::new().spawn(move || {
            let mut stdout = stdout.map(BufReader::new);
            while let Some(line) = stdout.as_mut().and_then(|stdout| answer(stdout).transpose()) {
                let ended = line.is_err();
                if sender.send(line).is_err() || ended {
                    return;
                }
            }
        })?;
        Ok(Lines { requests: Some(requests), answers, process })
    }

    /// Sends a request, and waits for the answer: its error, if it says so.
    ///
    /// # Errors
    /// `Err` if the engine can't be asked again.
    pub(super) fn ask(&mut self, request: String, timeout: Duration) -> Result<Result<(), Error>, Error> {
        let broken = |text: String| Error::new(Kind::Io, text);
        if let Ok(early) = self.answers.try_recv() {
            let line = early.map_err(|e| broken(format!("the engine's answer can't be read: {e}")))?;
            return Err(broken(format!("the engine wrote {} without being asked", quote(&line))));
        }
        let deadline = Instant::now() + timeout;
        if let Some(requests) = &self.requests {
            // It fails if the engine has ended, and then there is no answer.
            let _ = requests.send(request);
        }
        let line = match self.answers.recv_timeout(timeout) {
            Ok(line) => line.map_err(|e| broken(format!("the engine's answer can't be read: {e}")))?,
            Err(RecvTimeoutError::Timeout) => return Err(Error::new(Kind::Cancelled, super::engine::STOPPED)),
            Err(RecvTimeoutError::Disconnected) => {
                let Some(status) = self.process.wait(deadline.min(Instant::now() + GRACE)) else {
                    return Err(broken("the engine closed its standard output".to_string()));
                };
                let ended = super::engine::ended(status, &self.process.last_line());
                return Err(broken(ended.to_string()));
            }
        };
        let (word, why) = line.split_once(' ').unwrap_or((&line, ""));
        match word {
            "ok" => Ok(Ok(())),
            "unsupported" => Ok(Err(super::engine::unsupported(why))),
            "failed" => Ok(Err(super::engine::failed(why))),
            _ => Err(broken(format!(
                "the engine answered {}: \"ok\", \"unsupported WHY\" or \"failed WHY\" is expected",
                quote(&line)
            ))),
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.process.wait(Instant::now() + GRACE);
    }
}

/// A line without its end; `None` if there is no more.
fn answer(stdout: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    stdout.take(MAX_ANSWER).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() as u64 == MAX_ANSWER {
        return Err(io::Error::other(format!("a line has more than {MAX_ANSWER} bytes")));
    }
    Ok(Some(String::from_utf8_lossy(&line).trim_end().to_string()))
}
