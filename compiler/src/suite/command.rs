//! `command = "git push"` of a step: the fields a shell fills in for a command line.

use crate::value::{Record, Value};
use smol_str::SmolStr;

/// Why a command line is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandFault {
    Empty,
    Quotes,
}

/// The input of `shell:exec` and `shell:spawn` for one command; a program is taken to be in `/usr/bin`.
pub fn input(line: &str) -> Result<Record, CommandFault> {
    let words = shlex::split(line).ok_or(CommandFault::Quotes)?;
    let (program, arguments) = words.split_first().ok_or(CommandFault::Empty)?;
    let name = program.rsplit('/').next().unwrap_or(program);
    let path = if program.starts_with('/') {
        program.clone()
    } else {
        format!("/usr/bin/{program}")
    };
    let mut input = Record::from([
        ("command".into(), Value::str(line)),
        ("program".into(), Value::str(name)),
        ("program_path".into(), Value::str(path)),
        (
            "arg_count".into(),
            Value::Int(i64::try_from(arguments.len()).unwrap_or(i64::MAX)),
        ),
    ]);
    for (field, word) in ["arg1", "arg2"].into_iter().zip(arguments) {
        input.insert(SmolStr::new(field), Value::str(word.as_str()));
    }
    Ok(input)
}

#[cfg(test)]
mod tests {
    use super::{CommandFault, input};
    use crate::value::Value;

    #[test]
    fn words_become_fields() {
        let fields = input("git commit -m 'two words'").unwrap();
        let at = |name: &str| fields.get(name).cloned();
        assert_eq!(at("program"), Some(Value::str("git")));
        assert_eq!(at("program_path"), Some(Value::str("/usr/bin/git")));
        assert_eq!(at("arg1"), Some(Value::str("commit")));
        assert_eq!(at("arg2"), Some(Value::str("-m")));
        assert_eq!(at("arg_count"), Some(Value::Int(3)));
        let fields = input("/opt/x/tool").unwrap();
        assert_eq!(fields["program"], Value::str("tool"));
        assert_eq!(fields["program_path"], Value::str("/opt/x/tool"));
        assert_eq!(fields.get("arg1"), None);
        assert_eq!(input(""), Err(CommandFault::Empty));
        assert_eq!(input("a 'b"), Err(CommandFault::Quotes));
    }
}
