//! Process specs to kernel-enforced sandboxes.
//!
//! In: a [`spec::ProcessSpec`]. Out: a plan, which is pure data and the same on every platform, and a
//! running process confined by it. Nothing here decides policy; what cannot be enforced refuses to start.

pub mod spec;
