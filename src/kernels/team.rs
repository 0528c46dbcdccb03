//! Helpers for work of a few microseconds: threads of a rayon pool that wait a while for the next job before they go
//! back to the pool. Waking one that sleeps takes longer than such work.
//!
//! One caller at a time has the team; another does its work alone. A helper that comes late finds nothing to do, and
//! nobody waits for it.

#![allow(unsafe_code)] // a job lives on its caller's stack: see `Team::run`

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};

/// So long a helper waits for the next job.
const LINGER: Duration = Duration::from_micros(50);

/// What helpers do: take part after part until there is none.
type Job<'a> = &'a (dyn Fn() + Sync);

#[derive(Debug)]
pub(super) struct Team {
    /// A caller has the team.
    taken: AtomicBool,
    /// The number of helpers at work (low 32 bits), whether more may join (bit 32), and the number of jobs so far.
    state: AtomicU64,
    /// The job on its caller's stack: a pointer to a [`Job`]. Valid while `state` is open or a helper is at work.
    job: AtomicPtr<()>,
    /// Helpers that wait for a job.
    waiting: AtomicUsize,
    /// A job panicked in a helper.
    failed: AtomicBool,
}

const AT_WORK: u64 = (1 << 32) - 1;
const OPEN: u64 = 1 << 32;
const NEXT: u64 = 1 << 33;

pub(super) static TEAM: Team = Team {
    taken: AtomicBool::new(false),
    state: AtomicU64::new(0),
    job: AtomicPtr::new(std::ptr::null_mut()),
    waiting: AtomicUsize::new(0),
    failed: AtomicBool::new(false),
};

impl Team {
    /// Helpers that would start at once.
    pub(super) fn ready(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Calls `job` on this thread and on up to `helpers` others, and returns when all are done. False: it panicked
    /// in a helper.
    pub(super) fn run(&'static self, helpers: usize, job: Job<'_>) -> bool {
        if self.taken.swap(true, Acquire) {
            job();
            return true;
        }
        self.failed.store(false, Relaxed);
        self.job.store(std::ptr::from_ref(&job).cast_mut().cast(), Relaxed);
        // From here on helpers may join: none is at work, so the low bits are 0.
        self.state.fetch_add(NEXT | OPEN, Release);
        // Ends the job on every way out, also if it panics here.
        let _end = End(self);
        for _ in self.ready()..helpers {
            rayon::spawn(|| TEAM.help());
        }
        job();
        drop(_end);
        !self.failed.load(Relaxed)
    }

    /// Does one job after the other until none has come for a while.
    fn help(&self) {
        let mut done = 0;
        loop {
            self.waiting.fetch_add(1, Relaxed);
            let found = self.wait(done);
            self.waiting.fetch_sub(1, Relaxed);
            let Some(number) = found else { return };
            done = number;
            // SAFETY: this helper has joined. The caller stored the pointer before it opened the job, and its `End`
            // waits until every helper that joined has left: what is pointed to is alive until then.
            let job: Job<'_> = unsafe { *self.job.load(Relaxed).cast::<Job<'_>>() };
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                self.failed.store(true, Relaxed);
            }
            self.state.fetch_sub(1, Release);
        }
    }

    /// Joins the next open job after number `done` and gives its number.
    fn wait(&self, done: u64) -> Option<u64> {
        let start = Instant::now();
        for turn in 1u32.. {
            let state = self.state.load(Relaxed);
            if state & OPEN != 0
                && state / NEXT != done
                && self.state.compare_exchange(state, state + 1, Acquire, Relaxed).is_ok()
            {
                return Some(state / NEXT);
            }
            std::hint::spin_loop();
            if turn.is_multiple_of(64) && start.elapsed() > LINGER {
                break;
            }
        }
        None
    }
}

/// Ends a job: nobody joins any more, and those who did are waited for.
struct End(&'static Team);

impl Drop for End {
    fn drop(&mut self) {
        let Team { state, taken, .. } = self.0;
        state.fetch_and(!OPEN, Relaxed);
        let mut turn = 0u32;
        while state.load(Acquire) & AT_WORK != 0 {
            turn += 1;
            if turn < 10_000 {
                std::hint::spin_loop();
            } else {
                // The helper's processor does something else.
                std::thread::yield_now();
            }
        }
        taken.store(false, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_done_once_and_before_the_end() {
        for round in 0..2000 {
            let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let job = || {
                loop {
                    let part = next.fetch_add(1, Relaxed);
                    if part >= 50 {
                        break;
                    }
                    sum.fetch_add(part + round, Relaxed);
                }
            };
            assert!(TEAM.run(3, &job));
            assert_eq!(sum.into_inner(), 49 * 50 / 2 + 50 * round);
        }
    }

    #[test]
    fn callers_on_several_threads() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(every_part_is_done_once_and_before_the_end);
            }
        });
    }

    #[test]
    fn a_job_that_panics_in_a_helper_is_reported() {
        let caller = std::thread::current().id();
        let helped = AtomicBool::new(false);
        let mut failed = false;
        for _ in 0..1000 {
            failed |= !TEAM.run(1, &|| {
                if std::thread::current().id() == caller {
                    let start = Instant::now();
                    while !helped.load(Acquire) && start.elapsed() < Duration::from_millis(5) {
                        std::hint::spin_loop();
                    }
                } else {
                    helped.store(true, Release);
                    panic!("on purpose");
                }
            });
            if failed {
                return;
            }
        }
        panic!("no helper came");
    }
}
