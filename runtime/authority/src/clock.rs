//! The wall clock, as a trait, so that tests can hold it.

/// Tells the time in seconds since 1970. It may step backwards; the authority's own time does not.
pub trait Clock: Send + Sync {
    fn now(&self) -> i64;
}
