//! `box check`: what would be refused, and what would be reachable.

use super::prepare::{Purpose, disclose, prepare};
use super::{Failure, tell};
use crate::report::Detail;
use std::path::Path;

pub fn check(file: &Path) -> Result<i32, Failure> {
    let prepared = prepare(file, &[], Purpose::Check)?;
    disclose(&prepared, Detail::Full);
    tell(&format!(
        "{} and its policy have no errors; nothing was started",
        file.display()
    ));
    Ok(0)
}
