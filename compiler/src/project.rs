//! Which files go together: the box a policy belongs to, and the policy and schemas a test file is about.
//!
//! Whoever asks brings the file system; an editor lays its unsaved texts over it.

use crate::grammar::Span;
use crate::grammar::ast::Str;
use crate::grammar::diagnostic::Diagnostic;
use crate::suite::Header;
use std::path::{Path, PathBuf};

/// How test files are called.
pub const TEST_ENDING: &str = ".dwtest.toml";

/// What has to be known about files.
pub trait Files {
    fn is_file(&self, path: &Path) -> bool;
    /// The files directly in a folder, in any order; none where it cannot be read.
    fn list(&self, folder: &Path) -> Vec<PathBuf>;
}

/// The nearest `box.toml` in this folder or above it.
pub fn nearest_box(folder: &Path, files: &dyn Files) -> Option<PathBuf> {
    folder
        .ancestors()
        .map(|dir| dir.join("box.toml"))
        .find(|file| files.is_file(file))
}

/// The files a test file is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tested {
    pub policies: Vec<PathBuf>,
    pub policy_schema: Option<PathBuf>,
    pub event_schema: Option<PathBuf>,
    pub macros: Option<PathBuf>,
    pub providers: Option<PathBuf>,
}

/// The policy of a test file: what it names, else the policy of its own name, else the only one beside it.
pub fn tested(test: &Path, header: &Header, files: &dyn Files) -> Result<Tested, Box<Diagnostic>> {
    let folder = test.parent().unwrap_or(Path::new(""));
    let beside = |name: &Str| folder.join(name.value.as_str());
    let mut policies: Vec<PathBuf> = header.policies.iter().map(beside).collect();
    if policies.is_empty() {
        let name = test
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let own = folder.join(format!("{}.dw", name.trim_end_matches(TEST_ENDING)));
        if files.is_file(&own) {
            policies.push(own);
        } else {
            let all: Vec<PathBuf> = files
                .list(folder)
                .into_iter()
                .filter(|path| path.extension().is_some_and(|ending| ending == "dw"))
                .collect();
            match all.as_slice() {
                [only] => policies.push(only.clone()),
                _ => {
                    let message = "this file does not say which policy it tests";
                    return Err(Box::new(
                        Diagnostic::error("test-policy", Span::at(0), message)
                            .help("add a line such as `policy = \"policy.dw\"` at the top"),
                    ));
                }
            }
        }
    }
    Ok(Tested {
        policies,
        policy_schema: header.policy_schema.as_ref().map(beside),
        event_schema: header.event_schema.as_ref().map(beside),
        macros: header.macros.as_ref().map(beside),
        providers: header.providers.as_ref().map(beside),
    })
}
