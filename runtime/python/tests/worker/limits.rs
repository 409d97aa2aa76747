//! A script that takes too much ends with words, and this process goes on.

use crate::world::{Ran, Test, World};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    ("memory", memory),
    ("recursion", recursion),
    ("an_endless_loop", an_endless_loop),
    ("wall_clock", wall_clock),
    ("effects", effects),
    ("sleep", sleep),
    ("output", output),
    ("source_and_files", source_and_files),
    ("nested_text", nested_text),
    ("cancelled", cancelled),
];

fn alive(world: &World) {
    assert_eq!(world.run("print('alive')").stdout, "alive\n");
}

fn ends(world: &World, source: &str, status: i32, words: &str) -> Ran {
    let ran = world.run(source);
    assert_eq!(ran.status, status, "{source}\n{}", ran.all());
    assert!(ran.stderr.contains(words), "{source}\n{}", ran.all());
    ran
}

fn memory() {
    let mut world = World::new();
    world.limits.memory = 64 << 20;
    for source in [
        "x = 'x' * 10**9",
        "x = []\nwhile True:\n    x.append('y' * 1000)\n",
        "x = 'x'\nwhile True:\n    x = x + x\n",
        "try:\n    x = [0] * 10**9\nexcept BaseException:\n    print('caught')\n",
        "x = 2 ** (10 ** 9)",
        "x = list(range(10**9))",
        "x = bytes(10**10)",
        "import re\nre.sub('a', 'b' * 10**6, 'a' * 10**6)\n",
    ] {
        let ran = ends(&world, source, 1, "MemoryError");
        assert_eq!(ran.stdout, "", "{source}");
    }
    alive(&world);
}

fn recursion() {
    let world = World::new();
    ends(
        &world,
        "def f(n):\n    return f(n + 1)\nf(0)\n",
        1,
        "RecursionError",
    );
    let caught = world.run(
        "def f():\n    f()\ntry:\n    f()\nexcept RecursionError as e:\n    print('caught', e)\n",
    );
    assert_eq!(caught.stdout, "caught maximum recursion depth exceeded\n");
    let deep = world.run("x = []\nfor i in range(100000):\n    x = [x]\nprint(len(repr(x)))\n");
    assert!([0, 1].contains(&deep.status), "{}", deep.all());
    alive(&world);
}

fn an_endless_loop() {
    let mut world = World::new();
    world.limits.execution = Duration::from_millis(300);
    let ran = ends(
        &world,
        "print('start')\ntry:\n    while True:\n        pass\nexcept BaseException:\n    print('caught')\n",
        1,
        "TimeoutError",
    );
    assert_eq!(ran.stdout, "start\n");
    alive(&world);
}

fn wall_clock() {
    let mut world = World::new();
    world.limits.wall = Duration::from_millis(500);
    ends(&world, "while True:\n    pass\n", 125, "was stopped");
    ends(&world, "sleep(60)\n", 125, "was stopped");
    world.limits.wall = Duration::from_secs(60);
    alive(&world);
}

fn effects() {
    let mut world = World::new();
    world.limits.effects = 5;
    let source = "import os\nn = 0\nwhile True:\n    try:\n        os.listdir('.')\n        n += 1\n        print(n)\n    except BaseException:\n        print('caught')\n";
    let ran = ends(
        &world,
        source,
        1,
        "RuntimeError: a script may ask for 5 effects",
    );
    assert_eq!(ran.stdout, "1\n2\n3\n4\n5\n");
    assert_eq!(ran.asked.len(), 5);
    alive(&world);
}

fn sleep() {
    let mut world = World::new();
    world.limits.sleep = Duration::from_millis(50);
    ends(
        &world,
        "sleep(0.03)\nsleep(0.03)\n",
        1,
        "TimeoutError: a script may sleep 0.05 seconds",
    );
    ends(&world, "sleep(-1)\n", 1, "ValueError");
    ends(&world, "sleep(float('nan'))\n", 1, "ValueError");
    ends(&world, "sleep(float('inf'))\n", 1, "TimeoutError");
    ends(&world, "sleep('1')\n", 1, "TypeError");
}

fn output() {
    let mut world = World::new();
    world.limits.output = 100_000;
    let ran = ends(
        &world,
        "while True:\n    print('x' * 1000)\n",
        125,
        "wrote more than 100000 bytes",
    );
    assert!(ran.stdout.len() <= 100_000);
    let ran = ends(
        &world,
        "print('x' * 10**6)\n",
        125,
        "wrote more than 100000 bytes",
    );
    assert!(ran.stdout.len() <= 100_000);
    alive(&world);
}

fn source_and_files() {
    let mut world = World::new();
    world.limits.source = 100;
    world.limits.file = 1000;
    ends(&world, &"#".repeat(101), 2, "longer than 100 bytes");
    std::fs::write(world.work("big"), "x".repeat(1001)).unwrap();
    ends(&world, "open('big').read()", 1, "OSError");
    ends(&world, "open('new', 'w').write('x' * 1001)", 1, "OSError");
    world.limits.file = 32 << 20;
    ends(&world, "open('/dev/zero').read()", 1, "PermissionError");
}

fn nested_text() {
    let world = World::new();
    let deep = format!("x = {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let ran = world.run(&deep);
    assert!([1, 2, 125].contains(&ran.status), "{}", ran.status);
    let deep = format!("x = {}1", "-".repeat(200_000));
    let ran = world.run(&deep);
    assert!([1, 2, 125].contains(&ran.status), "{}", ran.status);
    alive(&world);
}

fn cancelled() {
    let mut world = World::new();
    world.cancel = Some(Arc::new(AtomicBool::new(true)));
    let ran = world.run("print(1)");
    assert_eq!((ran.status, ran.stdout.as_str()), (130, ""));
}
