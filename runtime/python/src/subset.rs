//! What this Python cannot run, found before anything of a script has run: every place in one pass, each with
//! what to write instead. Whether a module, one of its names or a builtin exists is asked of the interpreter
//! itself, so that no table of it can go stale.

mod advice;
mod ask;
mod names;
mod walk;

use monty_types::MontyException;
use ruff_text_size::{Ranged, TextRange, TextSize};
use std::fmt::Write;

/// Places told in one refusal.
const MOST: usize = 12;

/// One place in the script, what is wrong there, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) place: Place,
    pub(crate) code: &'static str,
    pub(crate) what: String,
    pub(crate) instead: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Range(TextRange),
    /// From 1.
    Line {
        line: usize,
        column: usize,
    },
}

impl Finding {
    fn at(
        place: &impl Ranged,
        code: &'static str,
        what: String,
        instead: impl Into<String>,
    ) -> Self {
        Self {
            place: Place::Range(place.range()),
            code,
            what,
            instead: instead.into(),
        }
    }

    /// What only the interpreter's own compiler refuses.
    pub(crate) fn left_over(exception: &MontyException) -> Self {
        let frame = exception.traceback().last();
        let (line, column) = frame.map_or((1, 1), |frame| {
            (frame.start.line as usize, frame.start.column as usize)
        });
        let told = exception.message().unwrap_or("this is not available");
        let what = told.trim_start_matches("The monty syntax parser does not yet support ");
        Self {
            place: Place::Line { line, column },
            code: "not-supported",
            what: if what == told {
                told.to_owned()
            } else {
                format!("{what} are not available")
            },
            instead: "write it with plain functions, classes and loops".into(),
        }
    }
}

/// Everything in `source` that cannot run, in the order it stands. Text that is no Python has none: the
/// compiler says what is wrong with it.
pub(crate) fn findings(source: &str) -> Vec<Finding> {
    let Ok(parsed) = ruff_python_parser::parse_module(source) else {
        return Vec::new();
    };
    let module = parsed.into_syntax();
    let mut findings = walk::walk(&module.body);
    findings.sort_by_key(|finding| match &finding.place {
        Place::Range(range) => range.start(),
        Place::Line { .. } => TextSize::default(),
    });
    findings
}

/// The refusal as people and agents read it.
pub(crate) fn text(name: &str, source: &str, findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings.iter().take(MOST) {
        let (line, column, width) = located(source, &finding.place);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "python3: {name}:{line}:{column}: {} [{}]",
            finding.what, finding.code
        );
        if let Some(shown) = source.lines().nth(line.saturating_sub(1)) {
            let indent = shown.len() - shown.trim_start().len();
            let before = column.saturating_sub(1).saturating_sub(indent);
            let _ = writeln!(text, "    {}", shown.trim());
            let _ = writeln!(
                text,
                "    {}{}",
                " ".repeat(before),
                "^".repeat(width.max(1))
            );
        }
        let _ = writeln!(text, "  instead: {}", finding.instead);
    }
    if let Some(more) = findings.len().checked_sub(MOST).filter(|more| *more > 0) {
        let _ = writeln!(text, "python3: and {more} more");
    }
    text.push_str(
        "python3: nothing was run. This is a subset of Python; a full one is a program of the host: start it \
         by its path (/usr/bin/python3 FILE) if the box has a [tool.python] table for it\n",
    );
    text
}

/// Line and column from 1, and how many characters to underline in that line.
fn located(source: &str, place: &Place) -> (usize, usize, usize) {
    match place {
        Place::Line { line, column } => (*line, *column, 1),
        Place::Range(range) => {
            let before = source.get(..range.start().to_usize()).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let begun = before.rsplit('\n').next().unwrap_or_default();
            let inside = source
                .get(range.start().to_usize()..range.end().to_usize())
                .unwrap_or_default();
            let first = inside.lines().next().unwrap_or_default();
            (line, begun.chars().count() + 1, first.chars().count())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{findings, text};

    fn refused(source: &str) -> String {
        let findings = findings(source);
        match findings.is_empty() {
            true => format!("----- runs\n{source}\n"),
            false => {
                let text = text("demo.py", source, &findings);
                let text = text
                    .split("python3: nothing was run")
                    .next()
                    .unwrap_or_default();
                format!("{text}\n")
            }
        }
    }

    fn all(sources: &[&str]) -> String {
        sources.iter().map(|source| refused(source)).collect()
    }

    #[test]
    fn statements() {
        insta::assert_snapshot!(all(&[
            "def walk(tree):\n    for node in tree:\n        yield node\n        yield from walk(node)\n",
            "counts = {}\ndel counts['a']\n",
            "match command:\n    case 'go': pass\n    case _: pass\n",
            "type Pair = tuple[int, int]\n",
            "try:\n    pass\nexcept* ValueError:\n    pass\n",
            "async def main():\n    async for x in rows():\n        pass\n    async with lock:\n        pass\n    return [x async for x in rows()]\n",
            "from json import *\n",
            "from . import sibling\n",
        ]));
    }

    #[test]
    fn classes() {
        insta::assert_snapshot!(all(&[
            "class BadInput(ValueError):\n    pass\n",
            "class Plain(object):\n    pass\n",
            "class Shape:\n    @property\n    def area(self):\n        return 1\n    @staticmethod\n    def make():\n        return Shape()\n",
            "class Money:\n    def __add__(self, other):\n        return self\n    def __len__(self):\n        return 1\n    def __repr__(self):\n        return 'Money'\n",
        ]));
    }

    #[test]
    fn imports() {
        insta::assert_snapshot!(all(&[
            "import os, subprocess, random\n",
            "import os.path\nfrom os import path, walk\nprint(os.path.join('a', 'b'))\n",
            "import sys\nprint(sys.argv)\nsys.exit(2)\nprint('x', file=sys.stderr)\n",
            "import json\nwith open('x') as f:\n    data = json.load(f)\n",
            "from time import sleep\nimport my_module\nimport requests\n",
            "from collections import OrderedDict, Counter\nfrom enum import Enum\n",
            "from datetime import datetime\nprint(datetime.utcnow())\n",
        ]));
    }

    #[test]
    fn calls_and_expressions() {
        insta::assert_snapshot!(all(&[
            "print('%s is %d' % (name, 3))\n",
            "value = eval(input('expression? '))\n",
            "try:\n    pass\nexcept IOError:\n    pass\n",
            "from pathlib import Path\nroot = Path('src')\nfor p in root.glob('*.py'):\n    print(p)\nprint(Path.cwd(), (root / 'a').relative_to(root))\n",
            "with open('log') as log:\n    for line in log:\n        print(line)\n",
            "print([line for line in open('log')])\n",
            "first = next((x for x in rows if x > 3), None)\n",
            "raise SystemExit(3)\n",
            "f = open('x', 'r+')\ng = open('y', newline='')\n",
            "z = 3j\nm = a @ b\n",
        ]));
    }

    #[test]
    fn what_runs_is_left_alone() {
        let runs = [
            "import json, re, math\nfrom pathlib import Path\nprint(json.dumps({'a': 1}), Path('x').read_text())\n",
            "try:\n    import numpy as np\nexcept ImportError:\n    np = None\n",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import requests\n",
            "def input(prompt):\n    return prompt\ninput('mine')\n",
            "time = 3\nprint(time)\n",
            "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    def __post_init__(self):\n        pass\n",
            "print(5 % 3, fetch('http://example.com')['status'])\nsleep(0)\nexit(3)\n",
            "print('a', file=None)\nwith open('x', 'w', encoding='utf-8') as f:\n    f.write('a')\n",
            "class File:\n    def glob(self):\n        return []\nFile().glob()\n",
            "import datetime as dt\nprint(dt.datetime.now(), dt.date.today())\n",
            "raise SystemExit('no input')\n",
            "match = 1\ntype = 2\n",
        ];
        for source in runs {
            assert_eq!(findings(source), [], "{source}");
        }
    }

    #[test]
    fn a_place_is_told_in_characters() {
        insta::assert_snapshot!(refused("é = 'é'; del é\n"));
    }

    #[test]
    fn what_is_no_python_has_no_findings() {
        assert_eq!(findings("def ("), []);
    }
}
