//! A language server for Dogwood.
#![forbid(unsafe_code)]
