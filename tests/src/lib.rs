//! Shared parts of the tests: nothing of this crate ships.
