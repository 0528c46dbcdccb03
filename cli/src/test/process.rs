//! Processes that end: at the latest at a deadline, and with all that they started.

use std::io::{self, Read};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are kept of the beginning and of the end of standard error.
const KEPT: usize = 4 << 10;

/// How long standard error is read after the end of a process: what it started may hold it open.
const GRACE: Duration = Duration::from_millis(200);

/// How long a process may have ended before that is seen.
const LONGEST_PAUSE: Duration = Duration::from_millis(8);

/// The processes that run.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Kills all processes, before an interruption ends the program. No other is started.
pub(crate) fn kill_all() {
    let running = running();
    running.iter().for_each(|id| group::kill(*id));
    std::mem::forget(running);
}

fn running() -> MutexGuard<'static, Vec<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process in a group of its own. It is killed when this is dropped.
pub(crate) struct Process {
    pub(super) child: Child,
    said: Arc<Mutex<Said>>,
    /// Disconnected at the end of standard error.
    heard: Receiver<()>,
}

/// What a process wrote on standard error.
#[derive(Default)]
struct Said {
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> io::Result<Process> {
        group::separate(command.stderr(Stdio::piped()));
        let mut running = running();
        let mut child = command.spawn()?;
        running.push(child.id());
        drop(running);
        let (said, stderr) = (Arc::new(Mutex::new(Said::default())), child.stderr.take());
        let (ear, heard) = mpsc::channel();
        let process = Process { child, said: said.clone(), heard };
        // Without a thread the process is killed here.
        thread::Builder::new().spawn(move || {
            if let Some(stderr) = stderr {
                listen(stderr, &said);
            }
            drop(ear);
        })?;
        Ok(process)
    }

    /// Waits for the end of the process; `None` if it runs at the deadline.
    pub(crate) fn wait(&mut self, deadline: Instant) -> Option<ExitStatus> {
        let mut pause = Duration::from_micros(250);
        while !group::has_ended(&mut self.child) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.reap()
    }

    /// Kills the group, and returns how the process ended.
    fn reap(&mut self) -> Option<ExitStatus> {
        let mut running = running();
        // Until it is reaped, no other process gets its number.
        group::kill(self.child.id());
        running.retain(|id| *id != self.child.id());
        let _ = self.child.kill();
        self.child.wait().ok()
    }

    /// The first line of standard error.
    pub(super) fn first_line(&self) -> String {
        self.lines(|said| said.first.clone()).into_iter().next().unwrap_or_default()
    }

    /// The last line of standard error.
    pub(crate) fn last_line(&self) -> String {
        self.lines(|said| said.last.clone()).pop().unwrap_or_default()
    }

    /// Lines that aren't empty.
    fn lines(&self, of: impl Fn(&Said) -> Vec<u8>) -> Vec<String> {
        let _ = self.heard.recv_timeout(GRACE);
        let bytes = of(&self.said.lock().unwrap_or_else(PoisonError::into_inner));
        let text = String::from_utf8_lossy(&bytes);
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_string).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if running().contains(&self.child.id()) {
            self.reap();
        }
    }
}

/// Reads standard error to its end, and keeps some.
fn listen(mut stderr: ChildStderr, said: &Mutex<Said>) {
    let mut buffer = [0; KEPT];
    while let Ok(count @ 1..) = stderr.read(&mut buffer) {
        let (piece, mut said) =
            (buffer.get(..count).unwrap_or(&[]), said.lock().unwrap_or_else(PoisonError::into_inner));
        let room = KEPT.saturating_sub(said.first.len());
        said.first.extend(piece.iter().take(room));
        said.last.extend(piece);
        let surplus = said.last.len().saturating_sub(KEPT);
        said.last.drain(..surplus);
    }
}

#[cfg(unix)]
mod group {
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    pub(super) fn separate(command: &mut Command) {
        command.process_group(0);
    }

    pub(super) fn kill(id: u32) {
        if let Some(group) = pid(id) {
            // It may have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Whether a process has ended. It is left to be reaped.
    pub(super) fn has_ended(child: &mut Child) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        pid(child.id()).is_none_or(|process| !matches!(waitid(WaitId::Pid(process), options), Ok(None)))
    }

    fn pid(id: u32) -> Option<Pid> {
        Pid::from_raw(id.try_into().ok()?)
    }
}

/// Elsewhere what a process started isn't killed with it.
#[cfg(not(unix))]
mod group {
    use std::process::{Child, Command};

    pub(super) fn separate(_: &mut Command) {}

    pub(super) fn kill(_: u32) {}

    pub(super) fn has_ended(child: &mut Child) -> bool {
        !matches!(child.try_wait(), Ok(None))
    }
}
