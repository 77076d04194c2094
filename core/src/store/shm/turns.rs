//! Every order in which processes may come to the words of a file, and every instruction at which one may
//! be killed: in tests a thread stands for a process, one of them runs at a time, and each access to a word is
//! where another may go on, or this one end.
//!
//! An order is a plan: at which access whose turn it becomes, or who is killed. All plans with so many
//! turns and kills are played; what nobody planned goes on as long as it can.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What a plan says of one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    To(usize),
    Kill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ready,
    /// For who holds a lock: until somebody has done something.
    Waits,
    Done,
    Dead,
}

/// Who looked at a word, or changed it.
#[derive(Clone, Copy)]
struct Access {
    by: usize,
    changes: bool,
}

#[derive(Default)]
struct State {
    plan: Vec<(usize, Act)>,
    /// How much of the plan was played, and how many accesses there were.
    played: usize,
    accesses: Vec<Access>,
    running: Option<usize>,
    status: Vec<Status>,
    round: usize,
    hangs: bool,
}

#[derive(Default)]
struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

thread_local! {
    static ME: Cell<Option<(&'static Turns, usize)>> = const { Cell::new(None) };
    static IS_DEAD: Cell<bool> = const { Cell::new(false) };
    static LOOKS: Cell<bool> = const { Cell::new(false) };
}

/// The number of who looks at what is left.
const LOOKER: u64 = 99;

struct Killed;

/// How many turns and kills the plans have.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub turns: usize,
    pub kills: usize,
}

/// Called before every access, which may change a word.
pub(super) fn turn(changes: bool) {
    let Some((turns, me)) = ME.get() else { return };
    if IS_DEAD.get() {
        return;
    }
    let mut state = turns.lock();
    state.accesses.push(Access { by: me, changes });
    for status in &mut state.status {
        if *status == Status::Waits {
            *status = Status::Ready;
        }
    }
    let Some(&(access, act)) = state.plan.get(state.played) else { return };
    if access != state.accesses.len() {
        return;
    }
    state.played += 1;
    match act {
        Act::To(other) if state.status[other] == Status::Ready => {
            state.running = Some(other);
            turns.wait_for(me, state);
        }
        Act::To(_) => {}
        Act::Kill => {
            state.status[me] = Status::Dead;
            IS_DEAD.set(true);
            drop(state);
            resume_unwind(Box::new(Killed));
        }
    }
}

/// Whether this process is dead, so that nothing it still does happens.
pub(super) fn is_dead() -> bool {
    IS_DEAD.get()
}

/// From now on this thread is who looks at what the others left, who are all at their end.
pub(super) fn look() {
    LOOKS.set(true);
}

/// This process's number.
pub(super) fn own() -> Option<u64> {
    if LOOKS.get() {
        return Some(LOOKER);
    }
    ME.get().map(|(_, me)| me as u64 + 1)
}

/// Whether the process of that number lives.
pub(super) fn lives(number: u64) -> Option<bool> {
    if LOOKS.get() {
        return Some(number == LOOKER);
    }
    let (turns, _) = ME.get()?;
    let state = turns.lock();
    let status = usize::try_from(number).ok()?.checked_sub(1).and_then(|place| state.status.get(place));
    Some(status.is_some_and(|&status| status != Status::Dead))
}

/// Waits for a holder; true when he is dead.
pub(super) fn wait(holder: u64) -> Option<bool> {
    if LOOKS.get() {
        assert_ne!(holder, LOOKER, "waits for itself");
        return Some(true);
    }
    let (turns, me) = ME.get()?;
    if lives(holder) == Some(false) || IS_DEAD.get() {
        return Some(true);
    }
    let mut state = turns.lock();
    state.status[me] = Status::Waits;
    if !state.go_on() {
        // Nobody is left who could give it back.
        state.hangs = true;
        state.status[me] = Status::Dead;
        drop(state);
        IS_DEAD.set(true);
        resume_unwind(Box::new(Killed));
    }
    turns.wait_for(me, state);
    Some(lives(holder) == Some(false))
}

impl State {
    /// The turn of the first who can go on; false when nobody can.
    fn go_on(&mut self) -> bool {
        self.running = self.status.iter().position(|&status| status == Status::Ready);
        self.running.is_some()
    }
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for(&self, me: usize, mut state: MutexGuard<'_, State>) {
        self.changed.notify_all();
        while state.running != Some(me) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.status[me] = Status::Ready;
    }
}

/// Plays all plans within the bounds. `begin` makes the state that all begin with; `check` looks at what is
/// left, and at what each process told, none of one that was killed. How many plans there were.
pub(super) fn explore<T: Send>(
    bounds: Bounds,
    processes: &[&(dyn Fn() -> T + Sync)],
    begin: impl Fn(),
    check: impl Fn(&[Option<T>]),
) -> usize {
    let turns: &'static Turns = Box::leak(Box::default());
    let told: Vec<Mutex<Option<T>>> = processes.iter().map(|_| Mutex::new(None)).collect();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (me, process) in processes.iter().enumerate() {
            let (told, is_over) = (&told[me], &is_over);
            scope.spawn(move || {
                for round in 1.. {
                    let mut state = turns.lock();
                    while state.round < round && !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        state = turns.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    }
                    if state.round < round {
                        return;
                    }
                    turns.wait_for(me, state);
                    ME.set(Some((turns, me)));
                    IS_DEAD.set(false);
                    let answer = catch_unwind(AssertUnwindSafe(process));
                    ME.set(None);
                    let mut state = turns.lock();
                    match answer {
                        Ok(answer) => {
                            state.status[me] = Status::Done;
                            *told.lock().unwrap() = Some(answer);
                        }
                        Err(payload) if payload.is::<Killed>() => {}
                        Err(_) => state.hangs = true,
                    }
                    for status in &mut state.status {
                        if *status == Status::Waits {
                            *status = Status::Ready;
                        }
                    }
                    state.go_on();
                    turns.changed.notify_all();
                }
            });
        }
        let play = |plan: &[(usize, Act)]| {
            begin();
            told.iter().for_each(|told| *told.lock().unwrap() = None);
            let mut state = turns.lock();
            let round = state.round + 1;
            let status = vec![Status::Ready; processes.len()];
            *state = State { plan: plan.to_vec(), status, round, running: Some(0), ..State::default() };
            turns.changed.notify_all();
            while state.running.is_some() {
                state = turns.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let (accesses, hangs) = (std::mem::take(&mut state.accesses), state.hangs);
            drop(state);
            assert!(!hangs, "somebody waits for ever, or panics: {plan:?}");
            let told: Vec<Option<T>> = told.iter().map(|told| told.lock().unwrap().take()).collect();
            let checked = catch_unwind(AssertUnwindSafe(|| check(&told)));
            assert!(checked.is_ok(), "this plan fails: {plan:?}");
            accesses
        };
        let count =
            catch_unwind(AssertUnwindSafe(|| play_all(&mut Vec::new(), bounds, processes.len(), &play)));
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        drop(turns.lock());
        turns.changed.notify_all();
        count.unwrap_or_else(|payload| resume_unwind(payload))
    })
}

/// A plan, and all that begin with it.
fn play_all(
    plan: &mut Vec<(usize, Act)>,
    bounds: Bounds,
    processes: usize,
    play: &impl Fn(&[(usize, Act)]) -> Vec<Access>,
) -> usize {
    let accesses = play(plan);
    let mut count = 1;
    let first = plan.last().map_or(1, |&(access, _)| access + 1);
    for (place, &Access { by, changes }) in accesses.iter().enumerate() {
        let access = place + 1;
        if access < first {
            continue;
        }
        let mut acts: Vec<Act> = Vec::new();
        if bounds.turns > 0 {
            acts.extend((0..processes).filter(|&other| other != by).map(Act::To));
        }
        // Who is killed before he looks at something is as if killed before he next changes something.
        if bounds.kills > 0 && changes {
            acts.push(Act::Kill);
        }
        for act in acts {
            let (turns, kills) = match act {
                Act::To(_) => (bounds.turns - 1, bounds.kills),
                Act::Kill => (bounds.turns, bounds.kills - 1),
            };
            plan.push((access, act));
            count += play_all(plan, Bounds { turns, kills }, processes, play);
            plan.pop();
        }
    }
    count
}
