//! The images a Mach-O file asks the loader for. Only the load commands are read, of every architecture.

use super::{read, text_at, u32_at, without_dots};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Architectures of one file at most. A compiled Java class has the same first bytes, and reads as more.
const MOST_SLICES: u32 = 16;
const LONGEST_COMMANDS: u64 = 1 << 20;
const EXECUTABLE: u32 = 2;
/// Libraries, by each way to ask for one: plain, weak, exported again, lazy, upward.
const LIBRARY: &[u32] = &[0xc, 0x8000_0018, 0x8000_001f, 0x20, 0x8000_0023];
const LOADER: u32 = 0xe;
const RUN_PATH: u32 = 0x8000_001c;

/// What the executable lends to the images it loads.
#[derive(Clone, Debug, Default)]
pub(super) struct Main {
    directory: PathBuf,
    run_paths: Vec<PathBuf>,
}

/// What an image asks for.
#[derive(Default)]
struct Commands {
    executable: bool,
    names: Vec<String>,
    run_paths: Vec<String>,
}

/// The images `path` needs, and what they inherit; none where the file is no Mach-O.
pub(super) fn needs(
    file: &File,
    head: &[u8],
    path: &Path,
    main: &Main,
) -> Option<(Vec<PathBuf>, Main)> {
    let mut commands = Commands::default();
    for offset in slices(head)? {
        // A slice that cannot be read asks for nothing; the kernel will not run it either.
        let _ = commands.read(file, offset);
    }
    // Links followed: a loader knows an image by where it is.
    let real = std::fs::canonicalize(path).ok()?;
    let directory = real.parent()?.to_path_buf();
    let mut main = main.clone();
    if commands.executable {
        main = Main {
            directory: directory.clone(),
            run_paths: Vec::new(),
        };
    }
    let place = |name: &str| -> Option<PathBuf> {
        let spelled = if let Some(rest) = name.strip_prefix("@loader_path/") {
            directory.join(rest)
        } else if let Some(rest) = name.strip_prefix("@executable_path/") {
            main.directory.join(rest)
        } else {
            PathBuf::from(name)
        };
        let plain = without_dots(&spelled);
        plain.is_absolute().then_some(plain)
    };
    let own = |text: &String| {
        // The directory itself, without anything after it.
        let text = format!("{}/", text.trim_end_matches('/'));
        place(&text)
    };
    let own: Vec<PathBuf> = commands.run_paths.iter().filter_map(own).collect();
    let mut found = Vec::new();
    for name in &commands.names {
        match name.strip_prefix("@rpath/") {
            None => found.extend(place(name)),
            Some(rest) => found.extend(
                own.iter()
                    .chain(&main.run_paths)
                    .map(|directory| without_dots(&directory.join(rest)))
                    .find(|path| path.is_file()),
            ),
        }
    }
    if commands.executable {
        main.run_paths = own;
    }
    Some((found, main))
}

/// Where the images of a file begin.
fn slices(head: &[u8]) -> Option<Vec<u64>> {
    let big = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let wide = match head.get(..4)? {
        [0xcf, 0xfa, 0xed, 0xfe] => return Some(vec![0]),
        [0xca, 0xfe, 0xba, 0xbe] => false,
        [0xca, 0xfe, 0xba, 0xbf] => true,
        _ => return None,
    };
    let count = big(4)?;
    if count > MOST_SLICES {
        return None;
    }
    let mut found = Vec::new();
    for slice in 0..count as usize {
        found.push(if wide {
            let at = 8 + slice * 32 + 8;
            u64::from(big(at)?) << 32 | u64::from(big(at + 4)?)
        } else {
            u64::from(big(8 + slice * 20 + 8)?)
        });
    }
    Some(found)
}

impl Commands {
    fn read(&mut self, file: &File, offset: u64) -> Option<()> {
        let header = read(file, offset, 32)?;
        if header.get(..4)? != [0xcf, 0xfa, 0xed, 0xfe] {
            return None;
        }
        self.executable |= u32_at(&header, 12)? == EXECUTABLE;
        let count = u32_at(&header, 16)?;
        let size = u64::from(u32_at(&header, 20)?).min(LONGEST_COMMANDS);
        let commands = read(file, offset.checked_add(32)?, size)?;
        let mut rest = commands.as_slice();
        for _ in 0..count {
            let (kind, size) = (u32_at(rest, 0)?, u32_at(rest, 4)? as usize);
            if size < 8 {
                return None;
            }
            let command = rest.get(..size)?;
            rest = rest.get(size..)?;
            let wanted = if kind == RUN_PATH {
                &mut self.run_paths
            } else if kind == LOADER || LIBRARY.contains(&kind) {
                &mut self.names
            } else {
                continue;
            };
            let name = text_at(command, u64::from(u32_at(command, 8)?))?;
            if !wanted.contains(&name) {
                wanted.push(name);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closure::program_closure;

    fn command(kind: u32, text: &str) -> Vec<u8> {
        let fixed: u32 = if kind == RUN_PATH || kind == LOADER {
            12
        } else {
            24
        };
        let mut body = vec![0; fixed as usize - 12];
        body.extend(text.as_bytes());
        body.push(0);
        while body.len() % 8 != 4 {
            body.push(0);
        }
        let size = 12 + u32::try_from(body.len()).unwrap();
        let mut bytes = Vec::new();
        for number in [kind, size, fixed] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(body);
        bytes
    }

    fn image(kind: u32, commands: &[Vec<u8>]) -> Vec<u8> {
        let all = commands.concat();
        let count = u32::try_from(commands.len()).unwrap();
        let size = u32::try_from(all.len()).unwrap();
        let mut bytes = vec![0xcf, 0xfa, 0xed, 0xfe];
        for number in [0x0100_000c, 0, kind, count, size, 0, 0] {
            bytes.extend(u32::to_le_bytes(number));
        }
        bytes.extend(all);
        bytes
    }

    fn fat(slices: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0xca, 0xfe, 0xba, 0xbe];
        bytes.extend(u32::try_from(slices.len()).unwrap().to_be_bytes());
        let mut offset = 8 + 20 * slices.len();
        for slice in slices {
            let size = u32::try_from(slice.len()).unwrap();
            for number in [1, 0, u32::try_from(offset).unwrap(), size, 0] {
                bytes.extend(number.to_be_bytes());
            }
            offset += slice.len();
        }
        bytes.extend(slices.concat());
        bytes
    }

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
            let path = std::fs::canonicalize(self.0.path()).unwrap().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
            path
        }
    }

    #[test]
    fn libraries_are_found_by_every_kind_of_name() {
        let tree = Tree(tempfile::tempdir().unwrap());
        let first = tree.put("lib/first", &image(6, &[command(0xc, "@rpath/second")]));
        let second = tree.put(
            "lib/second",
            &image(6, &[command(0x8000_0018, "@loader_path/sub/third")]),
        );
        let third = tree.put(
            "lib/sub/third",
            &image(6, &[command(0xc, "@executable_path/fourth")]),
        );
        let fourth = tree.put("bin/fourth", &image(6, &[command(0xc, "@rpath/absent")]));
        let commands = [
            command(LOADER, "/usr/lib/dyld"),
            command(RUN_PATH, "@loader_path/../lib/"),
            command(0xc, "@rpath/first"),
            command(0xc, "/usr/lib/libSystem.B.dylib"),
            command(0xc, "relative"),
        ];
        let program = tree.put("bin/program", &image(2, &commands));
        let mut expected = vec![
            fourth,
            first,
            second,
            third,
            "/usr/lib/dyld".into(),
            "/usr/lib/libSystem.B.dylib".into(),
        ];
        expected.sort();
        assert_eq!(program_closure(&program, ""), expected);
    }

    #[test]
    fn every_architecture_counts() {
        let tree = Tree(tempfile::tempdir().unwrap());
        let slices = ["/opt/one", "/opt/two"].map(|name| image(2, &[command(0xc, name)]));
        let program = tree.put("program", &fat(&slices));
        assert_eq!(
            program_closure(&program, ""),
            [PathBuf::from("/opt/one"), PathBuf::from("/opt/two")]
        );
    }

    #[test]
    fn a_library_that_asks_for_itself_by_ever_longer_names_is_followed_once() {
        let tree = Tree(tempfile::tempdir().unwrap());
        let own = tree.put(
            "lib/own",
            &image(6, &[command(0xc, "@loader_path/../lib/own")]),
        );
        let program = tree.put(
            "program",
            &image(2, &[command(0xc, "@loader_path/lib/own")]),
        );
        assert_eq!(program_closure(&program, ""), [own]);
    }

    #[test]
    fn a_broken_image_needs_nothing() {
        let tree = Tree(tempfile::tempdir().unwrap());
        let whole = fat(&[image(
            2,
            &[command(0xc, "/opt/one"), command(RUN_PATH, "/x")],
        )]);
        for length in 0..whole.len() {
            let program = tree.put("program", &whole[..length]);
            let found = program_closure(&program, "");
            assert!(found.is_empty() || found == [PathBuf::from("/opt/one")]);
            let mut wrong = whole.clone();
            wrong[length] = 0xff;
            program_closure(&tree.put("program", &wrong), "");
        }
    }
}
