//! The shell checkpoint of a box.
#![forbid(unsafe_code)]
