//! One answer, from who writes to who asked. A channel would do, but who receives from it spins before it waits.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

enum State<T> {
    Awaited,
    Given(T),
    /// There is nobody any more who would answer, or who would hear it.
    Gone,
}

struct Slot<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

impl<T> Slot<T> {
    /// Puts a state in the place of another.
    fn put(&self, state: State<T>) -> State<T> {
        let mut held = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut held, state)
    }
}

/// Where an answer is given; dropped without one, it tells that there is none.
pub(super) struct Answer<T>(Arc<Slot<T>>);

/// Where it is awaited.
pub(super) struct Awaited<T>(Arc<Slot<T>>);

/// Both ends of one.
pub(super) fn slot<T>() -> (Answer<T>, Awaited<T>) {
    let slot = Arc::new(Slot {
        state: Mutex::new(State::Awaited),
        changed: Condvar::new(),
    });
    (Answer(Arc::clone(&slot)), Awaited(slot))
}

impl<T> Answer<T> {
    /// Gives it back where nobody awaits it any more.
    pub fn send(self, value: T) -> Result<(), T> {
        match self.0.put(State::Given(value)) {
            State::Awaited => {
                self.0.changed.notify_one();
                Ok(())
            }
            State::Given(_) | State::Gone => match self.0.put(State::Gone) {
                State::Given(value) => Err(value),
                State::Awaited | State::Gone => Ok(()),
            },
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        let mut held = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*held, State::Awaited) {
            *held = State::Gone;
            drop(held);
            self.0.changed.notify_one();
        }
    }
}

impl<T> Awaited<T> {
    /// Nothing, where nobody will answer.
    pub fn recv(self) -> Option<T> {
        let mut held = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match std::mem::replace(&mut *held, State::Gone) {
                State::Given(value) => return Some(value),
                State::Gone => return None,
                State::Awaited => *held = State::Awaited,
            }
            held = self
                .0
                .changed
                .wait(held)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<T> Drop for Awaited<T> {
    fn drop(&mut self) {
        self.0.put(State::Gone);
    }
}
