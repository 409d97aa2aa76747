//! What a program needs besides itself in order to start: `#!` interpreters, the loader, libraries.
//!
//! Only headers and the tables of libraries are read, never more than a few kilobytes: agent programs are
//! often hundreds of megabytes. `LD_LIBRARY_PATH` and the loader's configuration are not consulted.

mod macho;

use macho::Main;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Programs and libraries followed for one program at most.
const MOST: usize = 512;
const LONGEST_TABLE: u64 = 1 << 20;

/// The files, as they are spelled in the program, that starting `program` opens. `search` is the `PATH`
/// that `#!/usr/bin/env name` looks in.
pub fn program_closure(program: &Path, search: &str) -> Vec<PathBuf> {
    let mut seen = BTreeSet::from([program.to_path_buf()]);
    let mut found = Vec::new();
    let mut waiting = vec![(program.to_path_buf(), Main::default())];
    while let Some((path, main)) = waiting.pop() {
        let (nexts, main) = needs(&path, search, main);
        for next in nexts {
            if seen.len() < MOST && seen.insert(next.clone()) {
                found.push(next.clone());
                waiting.push((next, main.clone()));
            }
        }
    }
    found.sort();
    found
}

fn needs(path: &Path, search: &str, main: Main) -> (Vec<PathBuf>, Main) {
    // Opening a pipe would wait for whoever writes to it.
    let Some(file) = path.is_file().then(|| File::open(path).ok()).flatten() else {
        return (Vec::new(), main);
    };
    let head = read(&file, 0, 4096).unwrap_or_default();
    if head.starts_with(b"#!") {
        (script_needs(&head, search), main)
    } else if head.starts_with(b"\x7fELF") {
        (elf_needs(&file, &head, path).unwrap_or_default(), main)
    } else {
        macho::needs(&file, &head, path, &main).unwrap_or((Vec::new(), main))
    }
}

fn script_needs(head: &[u8], search: &str) -> Vec<PathBuf> {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line.get(2..).unwrap_or_default()).into_owned();
    let mut words = line.split_whitespace();
    let Some(interpreter) = words.next() else {
        return Vec::new();
    };
    let mut found = vec![PathBuf::from(interpreter)];
    if Path::new(interpreter)
        .file_name()
        .is_some_and(|name| name == "env")
    {
        let named = words.find(|word| !word.starts_with('-') && !word.contains('='));
        found.extend(named.and_then(|name| in_search_path(name, search)));
    }
    found.retain(|path| path.is_absolute());
    found
}

/// The first executable called `name` in a `PATH`.
pub fn in_search_path(name: &str, search: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return None;
    }
    search
        .split(':')
        .filter(|directory| directory.starts_with('/'))
        .map(|directory| Path::new(directory).join(name))
        .find(|path| path.is_file())
}

fn elf_needs(file: &File, head: &[u8], path: &Path) -> Option<Vec<PathBuf>> {
    // 64-bit little-endian only: the two architectures a sandbox runs on.
    if head.get(4..6)? != [2, 1] {
        return None;
    }
    let table = u64_at(head, 32)?;
    let entry_size = u64::from(u16_at(head, 54)?);
    let entries = u64::from(u16_at(head, 56)?);
    let headers = read(file, table, (entry_size * entries).min(LONGEST_TABLE))?;
    let mut loads = Vec::new();
    let mut dynamic = None;
    let mut found = Vec::new();
    for header in headers.chunks_exact(
        usize::try_from(entry_size)
            .ok()
            .filter(|size| *size >= 56)?,
    ) {
        let (offset, address, size) =
            (u64_at(header, 8)?, u64_at(header, 16)?, u64_at(header, 32)?);
        match u32_at(header, 0)? {
            1 => loads.push((address, offset, size)),
            2 => dynamic = Some((offset, size)),
            3 => {
                let name = read(file, offset, size.min(4096))?;
                found.push(PathBuf::from(text_at(&name, 0)?));
            }
            _ => {}
        }
    }
    let Some((offset, size)) = dynamic else {
        return Some(found);
    };
    let segment = read(file, offset, size.min(LONGEST_TABLE))?;
    let mut needed = Vec::new();
    let (mut strings, mut strings_size, mut run_path) = (0, 0, None);
    for entry in segment.chunks_exact(16) {
        let value = u64_at(entry, 8)?;
        match u64_at(entry, 0)? {
            0 => break,
            1 => needed.push(value),
            5 => strings = value,
            10 => strings_size = value,
            15 => run_path = run_path.or(Some(value)),
            29 => run_path = Some(value),
            _ => {}
        }
    }
    let (address, offset, _) = loads
        .iter()
        .find(|(address, _, size)| strings >= *address && strings - address < *size)?;
    let strings = read(
        file,
        strings - address + offset,
        strings_size.min(LONGEST_TABLE),
    )?;
    let origin = path.parent()?.to_str()?;
    let run_path = run_path
        .and_then(|at| text_at(&strings, at))
        .unwrap_or_default()
        .replace("${ORIGIN}", origin)
        .replace("$ORIGIN", origin);
    for at in needed {
        let Some(name) = text_at(&strings, at) else {
            continue;
        };
        if name.contains('/') {
            found.push(PathBuf::from(name));
            continue;
        }
        found.extend(
            run_path
                .split(':')
                .filter(|directory| directory.starts_with('/'))
                .chain(LIBRARY_DIRECTORIES.iter().copied())
                .map(|directory| without_dots(&Path::new(directory).join(&name)))
                .find(|path| path.is_file()),
        );
    }
    found.retain(|path| path.is_absolute());
    Some(found)
}

#[cfg(target_arch = "aarch64")]
const LIBRARY_DIRECTORIES: &[&str] = &[
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib/aarch64-linux-gnu",
    "/usr/local/lib",
];

#[cfg(not(target_arch = "aarch64"))]
const LIBRARY_DIRECTORIES: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib/x86_64-linux-gnu",
    "/usr/local/lib",
];

/// `$ORIGIN/../lib` spelled without its dots.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            std::path::Component::ParentDir => {
                plain.pop();
            }
            std::path::Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

fn read(file: &File, offset: u64, size: u64) -> Option<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = file;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset)).ok()?;
    file.take(size).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(
        bytes.get(at..at.checked_add(2)?)?.try_into().ok()?,
    ))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(
        bytes.get(at..at.checked_add(8)?)?.try_into().ok()?,
    ))
}

fn text_at(bytes: &[u8], at: u64) -> Option<String> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
    Some(String::from_utf8_lossy(rest.get(..end)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_needs_its_interpreter_and_what_env_finds() {
        let scratch = tempfile::tempdir().unwrap();
        let tool = scratch.path().join("tool");
        std::fs::write(&tool, "plain").unwrap();
        let search = scratch.path().to_str().unwrap();
        assert_eq!(
            script_needs(b"#!/bin/sh -e\necho", search),
            [PathBuf::from("/bin/sh")]
        );
        assert_eq!(
            script_needs(b"#!/usr/bin/env -S A=1 tool -x\n", search),
            [PathBuf::from("/usr/bin/env"), tool]
        );
        assert!(script_needs(b"#!relative", search).is_empty());
        assert!(script_needs(b"#!", search).is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_executable_needs_its_loader_and_libraries() {
        let found = program_closure(&std::env::current_exe().unwrap(), "");
        let names: Vec<_> = found
            .iter()
            .filter_map(|p| p.file_name()?.to_str())
            .collect();
        assert!(names.iter().any(|n| n.starts_with("libc.so")), "{names:?}");
        assert!(names.iter().any(|n| n.starts_with("ld-linux")), "{names:?}");
    }

    #[test]
    fn a_broken_executable_needs_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let broken = scratch.path().join("broken");
        for length in 0..64 {
            let mut bytes = b"\x7fELF\x02\x01".to_vec();
            bytes.resize(6 + length, 0xff);
            std::fs::write(&broken, bytes).unwrap();
            assert!(program_closure(&broken, "").is_empty());
        }
    }
}
