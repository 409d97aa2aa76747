//! How scripts arrive and how they end.

use crate::world::{Test, World};
use box_python::Source;
use std::path::Path;

pub const TESTS: &[Test] = &[
    ("sources", sources),
    ("statuses", statuses),
    ("an_exception_has_a_traceback", an_exception_has_a_traceback),
    (
        "a_refusal_comes_before_any_effect",
        a_refusal_comes_before_any_effect,
    ),
    (
        "what_the_compiler_refuses_is_a_refusal",
        what_the_compiler_refuses_is_a_refusal,
    ),
    ("no_worker_no_run", no_worker_no_run),
];

fn sources() {
    let world = World::new();
    std::fs::write(world.work("s.py"), "print('from a file', __name__)\n").unwrap();
    std::fs::write(world.work("bad.py"), b"\xff\xfe").unwrap();
    let file = |path: &str| world.source(Source::File(path.into()), "").all();
    let script = Source::Script {
        name: "given.py".into(),
        text: "1/0".into(),
    };
    let text = [
        world
            .source(Source::Input, "print('from standard input')\n")
            .all(),
        world.source(script, "").all(),
        file("s.py"),
        file("none.py"),
        file("bad.py"),
        file("data"),
    ];
    insta::assert_snapshot!("sources", text.join("\n"));
    let world = world.deny("fs:read", "~/work/s.py");
    let ran = world.source(Source::File("s.py".into()), "");
    insta::assert_snapshot!("a_script_that_may_not_be_read", ran.all());
}

fn statuses() {
    let world = World::new();
    for (source, status) in [
        ("", 0),
        ("exit()", 0),
        ("exit(3)", 3),
        (
            "try:\n    exit(4)\nexcept Exception:\n    pass\nfinally:\n    print('f')\n",
            4,
        ),
        ("raise SystemExit('bye')", 1),
        ("raise ValueError('x')", 1),
        ("undefined_name", 1),
        ("def (", 1),
        ("del x", 2),
        ("quit('text')", 1),
    ] {
        assert_eq!(world.run(source).status, status, "{source}");
    }
    assert_eq!(world.run("quit('text')").stderr, "text\n");
}

fn an_exception_has_a_traceback() {
    let ran = World::new().run(
        "def inner(n):\n    return 10 / n\n\ndef outer():\n    return inner(0)\n\nprint('before', end='')\nouter()\n",
    );
    insta::assert_snapshot!("an_exception_has_a_traceback", ran.all());
    let ran = World::new().run("x = (1,\n");
    insta::assert_snapshot!("a_syntax_error", ran.all());
}

fn a_refusal_comes_before_any_effect() {
    let world = World::new();
    let ran = world.run(
        "open('out.txt', 'w').write('x')\nprint('hello')\nimport subprocess\nsubprocess.run(['ls'])\n",
    );
    insta::assert_snapshot!("a_refusal_comes_before_any_effect", ran.all());
    assert!(!world.work("out.txt").exists());
}

fn what_the_compiler_refuses_is_a_refusal() {
    let ran = World::new().run("print('hello')\nclass A:\n    x = 1\n    if x:\n        y = 2\n");
    insta::assert_snapshot!("what_the_compiler_refuses", ran.all());
}

fn no_worker_no_run() {
    let world = World::new();
    let source = || Source::Command("print(1)".into());
    let none = world.with_worker(source(), "", Path::new("/nowhere/box"));
    assert_eq!((none.status, none.stdout.as_str()), (125, ""));
    // A program that is no worker: it ends without a word.
    let other = world.with_worker(source(), "", Path::new("/bin/true"));
    assert_eq!((other.status, other.stdout.as_str()), (125, ""));
    assert!(other.stderr.contains("crashed"), "{}", other.stderr);
}
