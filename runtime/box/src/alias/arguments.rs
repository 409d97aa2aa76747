//! The command line of a shell, as far as programs that start one use it.

use std::ffi::OsString;

/// What an alias was asked to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    pub source: Source,
    /// Options to set before the text, as words of `set`.
    pub set: Vec<String>,
    /// `$0`, where the caller gives one.
    pub name: Option<String>,
    /// `$1` and on.
    pub args: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Command(String),
    File(OsString),
    Stdin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    Version,
    /// With what is wrong.
    Usage(String),
}

pub const USAGE: &str = "use: -c COMMAND [NAME [ARG…]], SCRIPT [ARG…], or -s [ARG…] with a script on standard input; \
before it -e, -u, -x, -f or -o pipefail, and -l or -i, which change nothing";

/// The words after `argv[0]`.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Invocation, Refused> {
    let mut words = words.into_iter().peekable();
    let mut set = Vec::new();
    let (mut command, mut stdin) = (false, false);
    while let Some(word) = words.peek() {
        let option = match word.to_str() {
            Some(option) if option.len() > 1 && option.starts_with(['-', '+']) => option.to_owned(),
            Some("-") => {
                words.next();
                break;
            }
            _ => break,
        };
        words.next();
        match option.as_str() {
            "--" => break,
            "--version" => return Err(Refused::Version),
            "--login" | "--norc" | "--noprofile" | "--posix" | "--noediting" => continue,
            _ if option.starts_with("--") => {
                return Err(Refused::Usage(format!(
                    "{option}: this option is not supported"
                )));
            }
            _ => {}
        }
        let (sign, letters) = option.split_at(1);
        for letter in letters.chars() {
            match letter {
                'c' => command = true,
                's' => stdin = true,
                // There is no profile to read and no terminal to talk to.
                'l' | 'i' => {}
                'e' | 'u' | 'x' | 'f' | 'v' => set.push(format!("{sign}{letter}")),
                'o' => {
                    let name = words.next().and_then(|name| name.into_string().ok());
                    let name =
                        name.ok_or_else(|| Refused::Usage("-o: this option wants a name".into()))?;
                    let plain = !name.is_empty()
                        && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
                    if !plain {
                        return Err(Refused::Usage(format!(
                            "-o: {name:?} is not the name of an option"
                        )));
                    }
                    set.extend([format!("{sign}o"), name]);
                }
                _ => {
                    return Err(Refused::Usage(format!(
                        "{sign}{letter}: this option is not supported"
                    )));
                }
            }
        }
    }
    let text = |word: OsString| {
        word.into_string()
            .map_err(|word| Refused::Usage(format!("{word:?} is not UTF-8 text")))
    };
    let (source, name) = if command {
        let Some(command) = words.next() else {
            return Err(Refused::Usage("-c: this option wants a command".into()));
        };
        (
            Source::Command(text(command)?),
            words.next().map(text).transpose()?,
        )
    } else if stdin {
        (Source::Stdin, None)
    } else {
        match words.next() {
            Some(file) => (Source::File(file.clone()), Some(text(file)?)),
            None => (Source::Stdin, None),
        }
    };
    let args = words.map(text).collect::<Result<_, _>>()?;
    Ok(Invocation {
        source,
        set,
        name,
        args,
    })
}

/// The text with its options set first, on the same line so that line numbers stay what they are.
pub fn with_options(set: &[String], text: String) -> String {
    if set.is_empty() {
        text
    } else {
        format!("set {}; {text}", set.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::{Invocation, Refused, parse, with_options};

    fn read(line: &str) -> String {
        let words = line
            .split(' ')
            .filter(|word| !word.is_empty())
            .map(|word| word.replace('_', " ").into());
        match parse(words) {
            Ok(Invocation {
                source,
                set,
                name,
                args,
            }) => {
                format!("{source:?} set {set:?} name {name:?} args {args:?}")
            }
            Err(Refused::Usage(reason)) => format!("usage: {reason}"),
            Err(Refused::Version) => "version".into(),
        }
    }

    #[test]
    fn the_forms_that_programs_use() {
        let lines = [
            "-c echo_hi",
            "-lc echo_hi",
            "-c -l echo_hi",
            "-l -c echo_hi",
            "-ic echo_hi",
            "--login -c echo_hi",
            "-c echo_$0_$1 name one two",
            "-euo pipefail -c make_check",
            "-e +x -c make",
            "build.sh --fast",
            "-x build.sh",
            "-- -odd-.sh",
            "-s one two",
            "",
            "-",
            "-c",
            "-o",
            "-o a;b -c x",
            "-z -c x",
            "--rcfile x -c y",
            "--version",
        ];
        let report: Vec<String> = lines
            .iter()
            .map(|line| format!("[{line}] {}", read(line)))
            .collect();
        insta::assert_snapshot!(report.join("\n"), @r#"
        [-c echo_hi] Command("echo hi") set [] name None args []
        [-lc echo_hi] Command("echo hi") set [] name None args []
        [-c -l echo_hi] Command("echo hi") set [] name None args []
        [-l -c echo_hi] Command("echo hi") set [] name None args []
        [-ic echo_hi] Command("echo hi") set [] name None args []
        [--login -c echo_hi] Command("echo hi") set [] name None args []
        [-c echo_$0_$1 name one two] Command("echo $0 $1") set [] name Some("name") args ["one", "two"]
        [-euo pipefail -c make_check] Command("make check") set ["-e", "-u", "-o", "pipefail"] name None args []
        [-e +x -c make] Command("make") set ["-e", "+x"] name None args []
        [build.sh --fast] File("build.sh") set [] name Some("build.sh") args ["--fast"]
        [-x build.sh] File("build.sh") set ["-x"] name Some("build.sh") args []
        [-- -odd-.sh] File("-odd-.sh") set [] name Some("-odd-.sh") args []
        [-s one two] Stdin set [] name None args ["one", "two"]
        [] Stdin set [] name None args []
        [-] Stdin set [] name None args []
        [-c] usage: -c: this option wants a command
        [-o] usage: -o: this option wants a name
        [-o a;b -c x] usage: -o: "a;b" is not the name of an option
        [-z -c x] usage: -z: this option is not supported
        [--rcfile x -c y] usage: --rcfile: this option is not supported
        [--version] version
        "#);
    }

    #[test]
    fn a_text_without_options_is_sent_as_it_is() {
        assert_eq!(with_options(&[], "make".into()), "make");
        assert_eq!(
            with_options(
                &["-e".into(), "-o".into(), "pipefail".into()],
                "make\n".into()
            ),
            "set -e -o pipefail; make\n"
        );
    }
}
