//! What to write instead of a module, a name or a builtin that is not there.

const NO_MODULE: &str = "use what is built in: asyncio base64 binascii collections dataclasses datetime functools itertools json \
     math os pathlib re sys typing unicodedata; code of your own goes into the one script";

/// Instead of a module.
pub(super) fn module(name: &str) -> String {
    let top = name.split('.').next().unwrap_or(name);
    let instead = match name {
        "os.path" => {
            "use pathlib: `Path(a) / b` joins, `Path(p).exists()`, `.is_file()`, `.name`, `.parent`, `.suffix`"
        }
        "collections.abc" => "leave the annotation out, or take the name from `typing`",
        _ => match top {
            "time" => {
                "use `datetime.now()` from datetime for the clock, and the builtin `sleep(seconds)` to wait"
            }
            "random" | "secrets" => "pick deterministically, or read bytes from a file",
            "subprocess" | "multiprocessing" | "pty" => {
                "run the command in the shell, and pass its output in through a file"
            }
            "requests" | "urllib" | "urllib3" | "http" | "httpx" | "aiohttp" | "socket" | "ssl" => {
                "use the builtin `fetch(url, method=\"GET\", headers=None, body=None)`; it gives a dict with \
                 \"status\", \"headers\" and \"body\""
            }
            "argparse" | "getopt" | "optparse" | "click" => {
                "write the values into the script: it has no arguments"
            }
            "csv" => "use `line.split(\",\")` over `f.read().splitlines()`",
            "enum" => "use module-level constants, or a dict of names to values",
            "abc" => "use plain classes with the same methods",
            "copy" => "use `list(x)`, `dict(x)`, or `json.loads(json.dumps(x))` for a deep copy",
            "shutil" => {
                "use `Path.read_bytes`, `write_bytes` and `rename`, or cp and mv in the shell"
            }
            "glob" | "fnmatch" => {
                "use `[p for p in Path(d).iterdir() if p.suffix == \".py\"]`, or find in the shell"
            }
            "hashlib" | "hmac" | "zlib" | "gzip" | "zipfile" | "tarfile" | "sqlite3" => {
                "use the shell's command for it (sha256sum, gzip, tar, …)"
            }
            "io" | "tempfile" => {
                "gather text in a list and `\"\".join(parts)`; write to a path of your own"
            }
            "string" => "write the characters out: \"abcdefghijklmnopqrstuvwxyz\"",
            "logging" | "warnings" | "traceback" | "pprint" => "use `print`",
            "threading" | "concurrent" | "queue" => {
                "use async functions and `asyncio.gather`, or a plain loop"
            }
            "decimal" | "fractions" => "count in whole units (cents) with int",
            "statistics" => "use `sum(xs) / len(xs)` and `sorted(xs)`",
            "textwrap" => "use str methods and f-strings",
            "contextlib" => "write a class with `__enter__` and `__exit__`",
            "heapq" | "bisect" => "use `sorted` and `list.insert`",
            "operator" => "use a lambda",
            "uuid" => "number things with `itertools.count`",
            _ => NO_MODULE,
        },
    };
    instead.to_owned()
}

/// Instead of a name of a module that is there.
pub(super) fn member(module_name: &str, name: &str) -> String {
    let instead = match (module_name, name) {
        ("os", "path") => return module("os.path"),
        ("os", "walk") => "walk with `Path.iterdir()` and `is_dir()`, or use find in the shell",
        ("os", "getcwd" | "chdir") => {
            "use relative paths: they start in the directory the script runs in"
        }
        ("os", "system" | "popen" | "execv" | "spawnv" | "kill" | "fork") => {
            return module("subprocess");
        }
        ("os", "urandom") => return module("random"),
        ("os", "symlink" | "link" | "chmod" | "chown" | "utime") => {
            "use the shell's command for it"
        }
        ("sys", "argv") => "write the values into the script: it has no arguments",
        ("sys", "exit") => "call the builtin `exit(status)`",
        ("sys", "stdin") => "read the input from a file: the script has no standard input",
        ("sys", "stdout" | "stderr") => "use `print(text, end=\"\")`",
        ("json", "dump") => "use `f.write(json.dumps(value))`",
        ("json", "load") => "use `json.loads(f.read())`",
        ("asyncio", "sleep") => "use the builtin `sleep(seconds)`",
        ("collections", "OrderedDict") => "use dict: it keeps its order",
        ("collections", "ChainMap") => "merge the dicts: `{**low, **high}`",
        ("functools", "lru_cache" | "cache" | "cached_property") => "keep the results in a dict",
        ("functools", "wraps") => "leave it out",
        ("datetime" | "datetime.datetime", "utcnow" | "fromtimestamp" | "utcfromtimestamp") => {
            "use `datetime.now(timezone.utc)`, and add a `timedelta(seconds=…)` to `datetime(1970, 1, 1)`"
        }
        ("typing", _) => "leave the annotation out",
        ("pathlib", "PurePath" | "PosixPath" | "PurePosixPath") => "use `Path`",
        _ => "do it with what the module has, or in plain code",
    };
    instead.to_owned()
}

/// Instead of a method of a path.
pub(super) fn path_method(name: &str) -> &'static str {
    match name {
        "glob" | "rglob" | "walk" => {
            "use `iterdir()` with a condition: `[p for p in d.iterdir() if p.suffix == \".py\"]`, or find in the shell"
        }
        "cwd" => "use relative paths: they start in the directory the script runs in",
        "home" | "expanduser" => "write the path out",
        "relative_to" | "is_relative_to" => "use `str(p).removeprefix(str(root) + \"/\")`",
        "touch" => "use `write_text(\"\")`",
        "parents" => "use `.parent` as often as needed",
        "chmod" | "symlink_to" | "hardlink_to" | "owner" | "group" => {
            "use the shell's command for it"
        }
        "replace" => "use `rename`",
        _ => {
            "use what paths have here: / name stem suffix parent parts exists is_file is_dir read_text read_bytes \
              write_text write_bytes open stat iterdir mkdir unlink rmdir rename"
        }
    }
}

/// Builtins of Python that may be missing, and what to write instead of each.
pub(super) const BUILTINS: [(&str, &str); 41] = [
    ("eval", "parse the text yourself, or use `json.loads`"),
    ("exec", "write the code out"),
    (
        "compile",
        "write the code out; for patterns there is `re.compile`",
    ),
    (
        "input",
        "read the input from a file: the script has no standard input",
    ),
    (
        "callable",
        "use `hasattr(x, \"__call__\")`, or know what you pass",
    ),
    (
        "issubclass",
        "classes have no bases here; compare them with `is`",
    ),
    ("format", "use an f-string: `f\"{value:>8}\"`"),
    ("dir", "name the attributes you need"),
    ("vars", "keep the values in a dict"),
    ("globals", "keep the values in a dict"),
    ("locals", "keep the values in a dict"),
    ("super", "classes have no bases here; call a plain function"),
    (
        "bytearray",
        "gather parts in a list and `b\"\".join(parts)`",
    ),
    ("memoryview", "slice the bytes"),
    ("complex", "keep the two parts in a tuple"),
    ("delattr", "set the attribute to None"),
    ("ascii", "use `repr`"),
    ("help", "there is no interactive help"),
    ("breakpoint", "use `print`"),
    ("__import__", "use the import statement"),
    (
        "__file__",
        "use paths relative to the directory the script runs in",
    ),
    ("__builtins__", "name what you need"),
    ("aiter", "loop over a list"),
    ("anext", "loop over a list"),
    ("copyright", "there is no interactive help"),
    ("credits", "there is no interactive help"),
    ("license", "there is no interactive help"),
    ("IOError", "catch `OSError`"),
    ("EnvironmentError", "catch `OSError`"),
    ("ConnectionError", "catch `OSError`"),
    ("ConnectionRefusedError", "catch `OSError`"),
    ("ConnectionResetError", "catch `OSError`"),
    ("BrokenPipeError", "catch `OSError`"),
    ("InterruptedError", "catch `OSError`"),
    ("BlockingIOError", "catch `OSError`"),
    ("EOFError", "test for an empty string"),
    ("UnicodeError", "catch `UnicodeDecodeError` or `ValueError`"),
    ("Warning", "use `print`"),
    ("DeprecationWarning", "use `print`"),
    ("GeneratorExit", "there are no generators"),
    ("StopAsyncIteration", "loop over a list"),
];

/// The special methods of a class that are called.
pub(super) const SPECIAL: [&str; 11] = [
    "__init__",
    "__post_init__",
    "__repr__",
    "__str__",
    "__eq__",
    "__hash__",
    "__iter__",
    "__next__",
    "__contains__",
    "__enter__",
    "__exit__",
];
