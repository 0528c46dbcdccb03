//! Helpers for work of a few microseconds. Waking a thread takes longer than such work, so a helper that has come waits
//! a while for the next job before it returns to its rayon pool.
//!
//! Each calling thread has its own team: threads of its own pool ([`OUTSIDE`] if it is in none), which serve this caller
//! until no job has come for a while. So no thread works for a caller of another pool. A job has a number
//! of places, and a helper takes one to join, so no job has more threads than were asked for. A helper that comes after
//! the job is done finds no place, and nobody waits for it.
//!
//! `rayon::in_place_scope` would do the same in five lines, but it waits until every thread that it called has woken
//! up. That makes outputs of 400 KB four times slower on two threads if the caller is in no pool, and as fast if it
//! is in one.

#![allow(unsafe_code)] // a job lives on its caller's stack: see `Team::run`

use super::{Stopped, available_threads};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// How long a helper waits for the next job.
const LINGER: Duration = Duration::from_micros(50);

/// The helpers of callers that are in no pool: one thread less than such a caller may use, as it works too. Of rayon's global
/// pool one thread more than there are processors would be awake at times, looking for work: a system may then let a helper
/// wait for the processor of its caller, while another has nothing to do.
static OUTSIDE: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let threads = available_threads().saturating_sub(1).max(1);
    ThreadPoolBuilder::new().num_threads(threads).thread_name(|_| "onnxref".into()).build().ok()
});

/// The work of a thread, which has a number in its job: 0 is the caller.
type Job<'a> = &'a (dyn Fn(usize) + Sync);

thread_local! {
    /// The team of this thread: one while it is in no pool, one for when it has joined a pool.
    static TEAMS: [Arc<Team>; 2] = Default::default();
    /// This thread works on a job. Its work may not call for more helpers.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f` with the team of this thread; `None` if the thread is ending.
fn with_own<R>(f: impl FnOnce(&Arc<Team>) -> R) -> Option<R> {
    TEAMS.try_with(|[outside, inside]| f(if rayon::current_thread_index().is_some() { inside } else { outside })).ok()
}

/// Whether a helper is ready to start at once.
pub(super) fn is_ready() -> bool {
    with_own(|team| team.helpers.load(Relaxed) > 0).unwrap_or(false)
}

/// Calls `job` on this thread and on up to `helpers` others of its pool. Returns when all are done.
pub(super) fn run(helpers: usize, job: Job<'_>) -> Result<(), Stopped> {
    if BUSY.get() {
        job(0);
        return Ok(());
    }
    with_own(|team| team.run(helpers, job)).unwrap_or_else(|| {
        job(0);
        Ok(())
    })
}

#[derive(Debug, Default)]
struct Team {
    /// Helpers at work (lowest 16 bits), places left (next 16 bits), and the number of the job.
    state: AtomicU64,
    /// The job on its caller's stack: a pointer to a [`Job`]. Valid while there are places or helpers at work.
    job: AtomicPtr<()>,
    /// Helpers that were spawned and have not returned to the pool.
    helpers: AtomicUsize,
    /// The job panicked in a helper.
    panicked: AtomicBool,
}

const ONE_AT_WORK: u64 = 1;
const AT_WORK: u64 = 0xffff;
const ONE_PLACE: u64 = 1 << 16;
const PLACES: u64 = 0xffff << 16;
const ONE_JOB: u64 = 1 << 32;

impl Team {
    /// See [`run`]. Called on this team's thread only.
    fn run(self: &Arc<Team>, helpers: usize, job: Job<'_>) -> Result<(), Stopped> {
        let helpers = helpers.min(AT_WORK as usize);
        self.panicked.store(false, Relaxed);
        self.job.store(std::ptr::from_ref(&job).cast_mut().cast(), Relaxed);
        // Before this no helper is at work and there are no places.
        self.state.fetch_add(ONE_JOB + ONE_PLACE * helpers as u64, Release);
        // Ends the job on every exit, even on a panic here.
        let end = End(self);
        BUSY.set(true);
        for _ in self.helpers.load(Relaxed)..helpers {
            let team = Arc::clone(self);
            let help = move || team.help();
            if rayon::current_thread_index().is_some() {
                self.helpers.fetch_add(1, Relaxed);
                rayon::spawn(help);
            } else if let Some(pool) = &*OUTSIDE {
                self.helpers.fetch_add(1, Relaxed);
                pool.spawn(help);
            }
        }
        job(0);
        drop(end);
        if self.panicked.load(Relaxed) { Err(Stopped::Panicked) } else { Ok(()) }
    }

    /// Does job after job until none has come for a while.
    fn help(self: &Arc<Team>) {
        // On the caller's own thread no job would ever come.
        if with_own(|own| !Arc::ptr_eq(own, self)) == Some(true) {
            let mut last = 0;
            while let Some((number, place)) = self.join(last) {
                last = number;
                // SAFETY: this helper has joined. The caller stored the pointer before it opened the job, and its
                // `End` waits until every helper that joined has left, so the pointer is valid until then.
                let job: Job<'_> = unsafe { *self.job.load(Relaxed).cast::<Job<'_>>() };
                BUSY.set(true);
                if catch_unwind(AssertUnwindSafe(|| job(place))).is_err() {
                    self.panicked.store(true, Relaxed);
                }
                BUSY.set(false);
                self.state.fetch_sub(ONE_AT_WORK, Release);
            }
        }
        self.helpers.fetch_sub(1, Relaxed);
    }

    /// Takes a place in the next job after number `last`. Returns the job's number and that of the place, from 1; `None` if
    /// no job came for a while.
    fn join(&self, last: u64) -> Option<(u64, usize)> {
        let start = Instant::now();
        for turn in 1u32.. {
            let state = self.state.load(Relaxed);
            let joined = state.wrapping_sub(ONE_PLACE).wrapping_add(ONE_AT_WORK);
            if state & PLACES != 0
                && state / ONE_JOB != last
                && self.state.compare_exchange(state, joined, Acquire, Relaxed).is_ok()
            {
                return Some((state / ONE_JOB, (state & PLACES) as usize / ONE_PLACE as usize));
            }
            std::hint::spin_loop();
            if turn.is_multiple_of(64) && start.elapsed() > LINGER {
                break;
            }
        }
        None
    }
}

/// Ends a job: closes it to helpers, and waits for those that have joined.
struct End<'a>(&'a Team);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let Team { state, .. } = self.0;
        state.fetch_and(!PLACES, Relaxed);
        let mut turn = 0u32;
        while state.load(Acquire) & AT_WORK != 0 {
            turn += 1;
            if turn < 10_000 {
                std::hint::spin_loop();
            } else {
                // The helper has been descheduled.
                std::thread::yield_now();
            }
        }
        BUSY.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sized;
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    /// A pool whose threads are called `name`.
    fn pool(name: &'static str, threads: usize) -> ThreadPool {
        ThreadPoolBuilder::new().num_threads(threads).thread_name(move |_| name.into()).build().unwrap()
    }

    /// How often tests repeat what may go wrong.
    const ROUNDS: usize = sized(2000, 4);

    #[test]
    fn every_part_is_done_once_and_before_the_end() {
        for round in 0..ROUNDS {
            let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let job = |_| {
                loop {
                    let part = next.fetch_add(1, Relaxed);
                    if part >= 50 {
                        break;
                    }
                    sum.fetch_add(part + round, Relaxed);
                }
            };
            assert_eq!(run(3, &job), Ok(()));
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

    /// Runs a job that takes long enough for others to come, and returns the names of the threads that worked on it.
    fn who_works(helpers: usize) -> Vec<String> {
        let seen = Mutex::new(BTreeSet::new());
        run(helpers, &|_| {
            let thread = std::thread::current();
            seen.lock().unwrap().insert((format!("{:?}", thread.id()), thread.name().unwrap_or("none").to_string()));
            let start = Instant::now();
            while start.elapsed() < Duration::from_micros(30) {
                std::thread::yield_now();
            }
        })
        .unwrap();
        seen.into_inner().unwrap().into_iter().map(|(_, name)| name).collect()
    }

    /// Also right after a job with more helpers, which are still around.
    #[test]
    fn no_more_threads_than_asked_for() {
        for &size in sized(&[2, 3, 8][..], &[3]) {
            let seen = pool("pool", size).install(|| {
                let mut most = [0; 9];
                for _ in 0..ROUNDS / 4 {
                    for threads in [8, 2, 3, 2] {
                        most[threads] = who_works(threads - 1).len().max(most[threads]);
                    }
                }
                most
            });
            for threads in [2, 3, 8] {
                assert!(seen[threads] <= threads, "{} threads of {threads}, in a pool of {size}", seen[threads]);
                // An interpreter's clock is too fast for helpers.
                assert!(cfg!(miri) || seen[threads] > 1, "no helper came in a pool of {size}");
            }
        }
    }

    /// Neither for callers in two pools at once, nor for one thread that turns to one pool after the other.
    #[test]
    fn helpers_are_of_the_callers_pool() {
        // An interpreter takes a minute for a few rounds of all threads.
        let rounds = sized(ROUNDS, 1);
        let pools = [pool("first", 2), pool("second", sized(3, 2))];
        let call = |pool: &ThreadPool, name: &str| {
            let seen = pool.install(|| who_works(4));
            assert!(seen.iter().all(|seen| seen == name), "{seen:?} in the pool {name:?}");
        };
        std::thread::scope(|scope| {
            for (pool, name) in pools.iter().zip(["first", "second"]) {
                scope.spawn(move || (0..rounds).for_each(|_| call(pool, name)));
            }
            scope.spawn(|| {
                for _ in 0..rounds {
                    call(&pools[0], "first");
                    call(&pools[1], "second");
                    let outside = who_works(4);
                    assert!(!outside.iter().any(|name| name == "first" || name == "second"), "{outside:?} outside");
                }
            });
        });
    }

    /// Nested work gets no helpers: the job would have more threads than requested.
    #[test]
    fn a_job_within_a_job_is_done_alone() {
        pool("pool", 4).install(|| {
            for _ in 0..ROUNDS / 4 {
                let inner = Mutex::new(Vec::new());
                run(1, &|_| {
                    let seen = who_works(3);
                    inner.lock().unwrap().push(seen.len());
                })
                .unwrap();
                assert!(inner.into_inner().unwrap().iter().all(|&threads| threads == 1));
            }
        });
    }

    #[test]
    fn a_job_that_panics_in_a_helper_is_reported() {
        let caller = std::thread::current().id();
        let helped = AtomicBool::new(false);
        let outcome = run(1, &|_| {
            if std::thread::current().id() != caller {
                helped.store(true, Release);
                panic!("on purpose");
            }
            let start = Instant::now();
            while !helped.load(Acquire) {
                assert!(start.elapsed() < Duration::from_secs(60), "no helper came");
                std::thread::yield_now();
            }
        });
        assert_eq!(outcome, Err(Stopped::Panicked));
        assert_eq!(run(1, &|_| ()), Ok(()), "the next job");
    }

    #[test]
    fn a_job_that_panics_in_its_caller_ends() {
        let caller = std::thread::current().id();
        let panicked = catch_unwind(|| {
            run(1, &|_| {
                if std::thread::current().id() == caller {
                    panic!("on purpose");
                }
            })
        });
        assert!(panicked.is_err());
        assert!(!BUSY.get());
        assert_eq!(run(1, &|_| ()), Ok(()), "the next job");
    }
}
