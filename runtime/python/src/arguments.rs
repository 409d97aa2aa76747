//! The command line of `python` and `python3`, as a pure function.

use thiserror::Error;

/// What `--version` says.
pub const VERSION: &str = "Python 3.14.0 (Monty subset, Box)";

/// What `--help` says.
pub const HELP: &str = "\
usage: python3 [-c SOURCE | FILE | -]

Runs Python in the box. Every file and network effect is decided by the policy; a refusal is a PermissionError
that names the rule.

  -c SOURCE    run SOURCE
  FILE         run the script FILE
  -            run what standard input holds, also when nothing is named
  -V, -h       version, this text
  -B -E -I -O -s -S -u -v -q -x   accepted, without effect

Built in beside Python's own: fetch(url, method=\"GET\", headers=None, body=None), which gives a dict with
\"status\", \"headers\" and \"body\"; sleep(seconds).
It is a subset of Python: what it cannot run is refused before anything has run, with a reason.
";

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    Command(String),
    File(String),
    Input,
    /// Print [`VERSION`].
    Version,
    /// Print [`HELP`].
    Help,
}

/// Why a command line is refused; the status is 2.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UsageError {
    #[error("python3: -c wants the source after it")]
    NoSource,
    #[error(
        "python3: `-m {0}` is not available: modules are not run as programs here. \
         Write the few lines you need with -c, or run the tool itself by its path"
    )]
    Module(String),
    #[error(
        "python3: arguments of a script are not available (no sys.argv): found {0:?}. \
         Write the values into the script, or read them from a file"
    )]
    Argument(String),
    #[error(
        "python3: there is no interactive mode (`{0}`): give a script, -c SOURCE, or standard input"
    )]
    Interactive(String),
    #[error("python3: the option {0} is not known; `python3 --help` lists what is")]
    Option(String),
}

const HARMLESS: &str = "BEIOPqsSuvxdb";

/// Reads the words after the program's name.
///
/// # Errors
/// When this checkpoint cannot do what they ask.
pub fn arguments<I>(words: I) -> Result<Invocation, UsageError>
where
    I: IntoIterator,
    I::Item: Into<String>,
{
    let mut words = words.into_iter().map(Into::into);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-" => return alone(Invocation::Input, words),
            "--version" => return Ok(Invocation::Version),
            "--help" | "-?" => return Ok(Invocation::Help),
            "--" => {
                return match words.next() {
                    Some(file) => alone(Invocation::File(file), words),
                    None => Ok(Invocation::Input),
                };
            }
            _ => {}
        }
        let Some(letters) = word.strip_prefix('-') else {
            return alone(Invocation::File(word), words);
        };
        if word.starts_with("--") {
            return Err(UsageError::Option(word));
        }
        for (at, letter) in letters.char_indices() {
            let rest = letters.get(at + letter.len_utf8()..).unwrap_or_default();
            let value = |words: &mut dyn Iterator<Item = String>| match rest {
                "" => words.next(),
                rest => Some(rest.to_owned()),
            };
            match letter {
                'c' => {
                    let source = value(&mut words).ok_or(UsageError::NoSource)?;
                    return alone(Invocation::Command(source), words);
                }
                'm' => return Err(UsageError::Module(value(&mut words).unwrap_or_default())),
                'V' => return Ok(Invocation::Version),
                'h' => return Ok(Invocation::Help),
                'i' => return Err(UsageError::Interactive(word)),
                // Both take a value and change only what is reported.
                'W' | 'X' => {
                    let _ = value(&mut words);
                    break;
                }
                letter if HARMLESS.contains(letter) => {}
                letter => return Err(UsageError::Option(format!("-{letter}"))),
            }
        }
    }
    Ok(Invocation::Input)
}

fn alone(
    invocation: Invocation,
    mut words: impl Iterator<Item = String>,
) -> Result<Invocation, UsageError> {
    match words.next() {
        Some(argument) => Err(UsageError::Argument(argument)),
        None => Ok(invocation),
    }
}

#[cfg(test)]
mod tests {
    use super::{Invocation, arguments};

    fn read(line: &str) -> String {
        match arguments(line.split(' ').filter(|word| !word.is_empty())) {
            Ok(Invocation::Command(source)) => format!("run {source:?}"),
            Ok(Invocation::File(file)) => format!("file {file:?}"),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn command_lines() {
        let lines = [
            "",
            "-",
            "-c pass",
            "-cpass",
            "-uc pass",
            "-I -B a.py",
            "-W ignore a.py",
            "-Wignore a.py",
            "-X utf8 -c pass",
            "-- -odd.py",
            "--",
            "-V",
            "--version",
            "-h",
            "--help",
            "-c",
            "-c pass x",
            "a.py x",
            "- x",
            "-m pip install x",
            "-mhttp.server",
            "-i",
            "-Z",
            "--verbose",
        ];
        let read = lines.map(|line| format!("python3 {line}\n    {}\n", read(line)));
        insta::assert_snapshot!(read.concat());
    }
}
