//! What is asked of events.
