//! From the interpreter's calls to effects, and from what came of them back to its values.

use super::link::Link;
use crate::protocol::{Aspect, Effect, Exception, Kind, Mode, Raised, Reply, Stat};
use monty_types::{
    ExcType, FileMode, MontyDate, MontyDateTime, MontyException, MontyFileHandle, MontyObject,
    MontyTimeZone, OsFunctionCall, stat_result,
};
use time::OffsetDateTime;

pub(super) enum Answer {
    Value(MontyObject),
    Raise(MontyException),
    /// Not to be caught.
    End(MontyException),
    /// No function of this name.
    Unknown(String),
}

/// A call of the interpreter's own library.
pub(super) fn system(link: &Link, call: OsFunctionCall) -> Answer {
    let look = |path: String, aspect| asked(link, Effect::Look { path, aspect }, b"", truth);
    match call {
        OsFunctionCall::Exists(path) => look(path.into_string(), Aspect::Exists),
        OsFunctionCall::IsFile(path) => look(path.into_string(), Aspect::File),
        OsFunctionCall::IsDir(path) => look(path.into_string(), Aspect::Dir),
        OsFunctionCall::IsSymlink(path) => look(path.into_string(), Aspect::Link),
        OsFunctionCall::ReadText(path) => {
            let path = path.into_string();
            asked(link, Effect::Read { path }, b"", |_, bytes| text(bytes))
        }
        OsFunctionCall::ReadBytes(path) => {
            let path = path.into_string();
            asked(link, Effect::Read { path }, b"", |_, bytes| {
                Ok(MontyObject::Bytes(bytes))
            })
        }
        OsFunctionCall::Stat(path) => {
            let path = path.into_string();
            asked(link, Effect::Stat { path }, b"", stat)
        }
        OsFunctionCall::Iterdir(path) => {
            let path = path.into_string();
            let effect = Effect::List { path: path.clone() };
            asked(link, effect, b"", |reply, _| children(&path, reply))
        }
        OsFunctionCall::Resolve(path) => locate(link, path.into_string(), "resolve"),
        OsFunctionCall::Absolute(path) => locate(link, path.into_string(), "absolute"),
        OsFunctionCall::WriteText(call) => {
            write_text(link, call.path.into_string(), &call.data, false)
        }
        OsFunctionCall::AppendText(call) => {
            write_text(link, call.path.into_string(), &call.data, true)
        }
        OsFunctionCall::WriteBytes(call) => {
            write_bytes(link, call.path.into_string(), &call.data, false)
        }
        OsFunctionCall::AppendBytes(call) => {
            write_bytes(link, call.path.into_string(), &call.data, true)
        }
        OsFunctionCall::Open(call) => open(link, call.path.into_string(), call.mode),
        OsFunctionCall::Mkdir(call) => {
            let effect = Effect::MakeDir {
                path: call.path.into_string(),
                parents: call.parents,
                exist_ok: call.exist_ok,
            };
            asked(link, effect, b"", nothing)
        }
        OsFunctionCall::Unlink(path) => {
            let path = path.into_string();
            asked(link, Effect::RemoveFile { path }, b"", nothing)
        }
        OsFunctionCall::Rmdir(path) => {
            let path = path.into_string();
            asked(link, Effect::RemoveDir { path }, b"", nothing)
        }
        OsFunctionCall::Rename(call) => {
            let to = call.dst.into_string();
            let effect = Effect::Rename {
                from: call.src.into_string(),
                to: to.clone(),
            };
            asked(link, effect, b"", |_, _| Ok(MontyObject::Path(to)))
        }
        OsFunctionCall::Getenv(_) | OsFunctionCall::GetEnviron => {
            asked(link, Effect::Environment, b"", nothing)
        }
        OsFunctionCall::DateToday => asked(link, Effect::Now, b"", |reply, _| {
            let now = moment(&reply)?;
            Ok(MontyObject::Date(MontyDate {
                year: now.year(),
                month: u8::from(now.month()),
                day: now.day(),
            }))
        }),
        OsFunctionCall::DateTimeNow(zone) => asked(link, Effect::Now, b"", |reply, _| {
            let now = moment(&reply)?;
            Ok(MontyObject::DateTime(date_time(now, zone)))
        }),
    }
}

/// A call of a function that the interpreter does not know.
pub(super) fn function(
    link: &Link,
    name: &str,
    args: &[MontyObject],
    kwargs: &[(MontyObject, MontyObject)],
) -> Answer {
    let effect = match name {
        "exit" | "quit" => return exit(name, args, kwargs),
        "sleep" => sleep(args, kwargs).map(|effect| (effect, Vec::new())),
        "fetch" => fetch(args, kwargs),
        _ => return Answer::Unknown(name.to_owned()),
    };
    match effect {
        Ok((effect, body)) => asked(link, effect, &body, reply),
        Err(text) => Answer::Raise(MontyException::new(ExcType::TypeError, Some(text))),
    }
}

type Made = Result<MontyObject, MontyException>;

fn asked(
    link: &Link,
    effect: Effect,
    bytes: &[u8],
    make: impl FnOnce(Reply, Vec<u8>) -> Made,
) -> Answer {
    match link.ask(effect, bytes) {
        (Reply::Raise(raised), _) => Answer::Raise(exception(raised)),
        (Reply::End(raised), _) => Answer::End(exception(raised)),
        (reply, bytes) => match make(reply, bytes) {
            Ok(value) => Answer::Value(value),
            Err(exception) => Answer::Raise(exception),
        },
    }
}

fn exception(raised: Raised) -> MontyException {
    let kind = match raised.exception {
        Exception::Permission => ExcType::PermissionError,
        Exception::NotFound => ExcType::FileNotFoundError,
        Exception::Exists => ExcType::FileExistsError,
        Exception::IsADirectory => ExcType::IsADirectoryError,
        Exception::NotADirectory => ExcType::NotADirectoryError,
        Exception::Os => ExcType::OSError,
        Exception::Timeout => ExcType::TimeoutError,
        Exception::Value => ExcType::ValueError,
        Exception::Runtime => ExcType::RuntimeError,
    };
    MontyException::new(kind, Some(raised.text))
}

fn unexpected() -> MontyException {
    MontyException::runtime_error("the box gave an answer that does not fit the question")
}

fn nothing(_: Reply, _: Vec<u8>) -> Made {
    Ok(MontyObject::None)
}

fn truth(reply: Reply, _: Vec<u8>) -> Made {
    match reply {
        Reply::Truth(truth) => Ok(MontyObject::Bool(truth)),
        _ => Err(unexpected()),
    }
}

/// Text as Python reads it: UTF-8, and every line end a newline.
fn text(bytes: Vec<u8>) -> Made {
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        MontyException::new(
            ExcType::UnicodeDecodeError,
            Some(format!(
                "'utf-8' codec can't decode byte 0x{byte:02x} in position {at}: invalid utf-8"
            )),
        )
    })?;
    Ok(MontyObject::String(if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text
    }))
}

fn stat(reply: Reply, _: Vec<u8>) -> Made {
    let Reply::Stat(Stat {
        kind,
        mode,
        size,
        modified,
    }) = reply
    else {
        return Err(unexpected());
    };
    let kind = match kind {
        Kind::File => 0o100_000,
        Kind::Dir => 0o040_000,
        Kind::Link => 0o120_000,
        Kind::Other => 0o010_000,
    };
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let mode = kind | i64::from(mode);
    // Who owns it, where it lies and how often it is linked are not the script's to know.
    Ok(stat_result(
        mode, 0, 0, 1, 0, 0, size, modified, modified, modified,
    ))
}

fn children(path: &str, reply: Reply) -> Made {
    let Reply::Names(names) = reply else {
        return Err(unexpected());
    };
    let child = |name: String| match path {
        "." | "" => name,
        path if path.ends_with('/') => format!("{path}{name}"),
        path => format!("{path}/{name}"),
    };
    let children = names.into_iter().map(child).map(MontyObject::Path);
    Ok(MontyObject::List(children.collect()))
}

fn locate(link: &Link, path: String, call: &str) -> Answer {
    let call = call.to_owned();
    asked(link, Effect::Locate { path, call }, b"", nothing)
}

fn written(count: usize) -> MontyObject {
    MontyObject::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn write_text(link: &Link, path: String, data: &str, append: bool) -> Answer {
    let count = data.chars().count();
    let effect = Effect::Write { path, append };
    asked(link, effect, data.as_bytes(), |_, _| Ok(written(count)))
}

fn write_bytes(link: &Link, path: String, data: &[u8], append: bool) -> Answer {
    let effect = Effect::Write { path, append };
    asked(link, effect, data, |_, _| Ok(written(data.len())))
}

fn open(link: &Link, path: String, mode: FileMode) -> Answer {
    let asked_for = if mode.is_append() {
        Mode::Append
    } else if mode.writable() {
        Mode::Write
    } else {
        Mode::Read
    };
    let effect = Effect::Open {
        path: path.clone(),
        mode: asked_for,
    };
    asked(link, effect, b"", |_, _| {
        Ok(MontyObject::FileHandle(MontyFileHandle {
            path,
            mode,
            position: 0,
        }))
    })
}

fn moment(reply: &Reply) -> Result<OffsetDateTime, MontyException> {
    let Reply::Time(micros) = reply else {
        return Err(unexpected());
    };
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(*micros) * 1000).map_err(|_| unexpected())
}

/// The machine's zone is none of the script's business: without one asked for, it is UTC.
fn date_time(now: OffsetDateTime, zone: Option<MontyTimeZone>) -> MontyDateTime {
    let offset = zone.as_ref().map(|zone| zone.offset_seconds);
    let local = offset
        .and_then(|offset| now.checked_add(time::Duration::seconds(i64::from(offset))))
        .unwrap_or(now);
    MontyDateTime {
        year: local.year(),
        month: u8::from(local.month()),
        day: local.day(),
        hour: local.hour(),
        minute: local.minute(),
        second: local.second(),
        microsecond: local.microsecond(),
        offset_seconds: offset,
        timezone_name: zone.and_then(|zone| zone.name),
    }
}

/// Can be caught, and runs what `finally` holds, as Python's.
fn exit(name: &str, args: &[MontyObject], kwargs: &[(MontyObject, MontyObject)]) -> Answer {
    let argument = match (args, kwargs) {
        ([], []) | ([MontyObject::None], []) => None,
        ([MontyObject::Bool(status)], []) => Some(i64::from(*status).to_string()),
        ([status], []) => Some(status.to_string()),
        _ => {
            let text = format!("{name}() takes at most one argument, the status");
            return Answer::Raise(MontyException::new(ExcType::TypeError, Some(text)));
        }
    };
    Answer::Raise(MontyException::new(ExcType::SystemExit, argument))
}

fn sleep(args: &[MontyObject], kwargs: &[(MontyObject, MontyObject)]) -> Result<Effect, String> {
    match (args, kwargs) {
        ([MontyObject::Int(seconds)], []) => Ok(Effect::Sleep {
            seconds: *seconds as f64,
        }),
        // JSON has no number for what is none, and none for the infinite.
        ([MontyObject::Float(seconds)], []) => Ok(Effect::Sleep {
            seconds: if seconds.is_nan() {
                -1.0
            } else {
                seconds.clamp(-1.0, 1e12)
            },
        }),
        _ => Err("sleep() takes one number, the seconds to wait".into()),
    }
}

/// `fetch(url, method="GET", headers=None, body=None)`.
fn fetch(
    args: &[MontyObject],
    kwargs: &[(MontyObject, MontyObject)],
) -> Result<(Effect, Vec<u8>), String> {
    const NAMES: [&str; 4] = ["url", "method", "headers", "body"];
    let mut given: [Option<&MontyObject>; 4] = [None; 4];
    if args.len() > NAMES.len() {
        return Err(format!(
            "fetch() takes from 1 to 4 positional arguments but {} were given",
            args.len()
        ));
    }
    for (slot, value) in given.iter_mut().zip(args) {
        *slot = Some(value);
    }
    for (name, value) in kwargs {
        let name = name.to_string();
        let slot = NAMES
            .iter()
            .zip(given.iter_mut())
            .find(|(known, _)| **known == name);
        match slot {
            None => {
                return Err(format!(
                    "fetch() got an unexpected keyword argument '{name}'"
                ));
            }
            Some((_, Some(_))) => {
                return Err(format!("fetch() got multiple values for argument '{name}'"));
            }
            Some((_, slot)) => *slot = Some(value),
        }
    }
    let [url, method, headers, body] = given;
    let url = match url {
        Some(MontyObject::String(url)) => url.clone(),
        Some(other) => return Err(wrong("url", "str", other)),
        None => return Err("fetch() missing 1 required positional argument: 'url'".into()),
    };
    let method = match method {
        None => "GET".to_owned(),
        Some(MontyObject::String(method)) => method.clone(),
        Some(other) => return Err(wrong("method", "str", other)),
    };
    let headers = match headers {
        None | Some(MontyObject::None) => Vec::new(),
        Some(MontyObject::Dict(pairs)) => pairs
            .into_iter()
            .map(|(name, value)| match (name, value) {
                (MontyObject::String(name), MontyObject::String(value)) => {
                    Ok((name.clone(), value.clone()))
                }
                _ => Err("fetch() argument 'headers' must map str to str".to_owned()),
            })
            .collect::<Result<_, _>>()?,
        Some(other) => return Err(wrong("headers", "dict or None", other)),
    };
    let body = match body {
        None | Some(MontyObject::None) => Vec::new(),
        Some(MontyObject::String(body)) => body.clone().into_bytes(),
        Some(MontyObject::Bytes(body)) => body.clone(),
        Some(other) => return Err(wrong("body", "str, bytes or None", other)),
    };
    let effect = Effect::Fetch {
        url,
        method,
        headers,
    };
    Ok((effect, body))
}

fn wrong(argument: &str, wanted: &str, found: &MontyObject) -> String {
    let found = found.type_name();
    format!("fetch() argument '{argument}' must be {wanted}, not {found}")
}

fn reply(reply: Reply, bytes: Vec<u8>) -> Made {
    let (status, headers) = match reply {
        Reply::Fetched { status, headers } => (status, headers),
        Reply::Done => return Ok(MontyObject::None),
        _ => return Err(unexpected()),
    };
    let text = |text: &str| MontyObject::String(text.to_owned());
    let headers: Vec<_> = headers
        .into_iter()
        .map(|(name, value)| (MontyObject::String(name), MontyObject::String(value)))
        .collect();
    Ok(MontyObject::dict(vec![
        (text("status"), MontyObject::Int(i64::from(status))),
        (text("headers"), MontyObject::dict(headers)),
        (text("body"), text(&String::from_utf8_lossy(&bytes))),
    ]))
}
