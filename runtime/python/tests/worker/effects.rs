//! Every file operation is one decision, on the name the path leads to.

use crate::world::{Test, World};
use std::os::unix::fs::symlink;

pub const TESTS: &[Test] = &[
    ("each_operation_is_decided", each_operation_is_decided),
    (
        "an_open_file_is_decided_each_time",
        an_open_file_is_decided_each_time,
    ),
    (
        "a_denial_can_be_caught_and_names_its_rule",
        a_denial_can_be_caught_and_names_its_rule,
    ),
    (
        "an_uncaught_denial_ends_the_script",
        an_uncaught_denial_ends_the_script,
    ),
    (
        "links_and_dots_are_decided_where_they_lead",
        links_and_dots_are_decided_where_they_lead,
    ),
    (
        "a_denial_hides_what_is_missing",
        a_denial_hides_what_is_missing,
    ),
    ("no_permit_opens_the_box", no_permit_opens_the_box),
    (
        "a_rename_needs_all_its_permits",
        a_rename_needs_all_its_permits,
    ),
    ("errors_are_those_of_python", errors_are_those_of_python),
    (
        "the_clock_is_ours_and_the_environment_is_not_told",
        the_clock_is_ours_and_the_environment_is_not_told,
    ),
    ("text_and_bytes", text_and_bytes),
];

fn each_operation_is_decided() {
    let world = World::new();
    let ran = world.run(
        "import os\nfrom pathlib import Path\n\
         p = Path('new.txt')\n\
         print(p.exists(), p.write_text('héllo'), p.read_text(), p.stat().st_size, p.is_file(), p.is_dir())\n\
         os.mkdir('made')\nos.makedirs('x/y/z', exist_ok=True)\n\
         print(sorted(os.listdir('.')), [str(c) for c in Path('x').iterdir()])\n\
         os.rename('new.txt', 'made/moved.txt')\nprint(Path('made/moved.txt').read_bytes())\n\
         os.remove('made/moved.txt')\nos.rmdir('made')\nprint(os.stat('a.txt').st_size, Path('a.txt').is_symlink())\n",
    );
    insta::assert_snapshot!("each_operation_is_decided", ran.all());
    assert!(!world.work("made").exists() && world.work("x/y/z").is_dir());
}

fn an_open_file_is_decided_each_time() {
    let world = World::new();
    let ran = world.run(
        "with open('log', 'w') as f:\n    f.write('a\\n')\n    f.write('b\\n')\n\
         with open('log', 'a') as f:\n    f.write('c\\n')\n\
         with open('log') as f:\n    print(f.readline(), f.read())\n    f.seek(0)\n    print(f.readlines())\n",
    );
    insta::assert_snapshot!("an_open_file_is_decided_each_time", ran.all());
}

fn a_denial_can_be_caught_and_names_its_rule() {
    let world = World::new().deny("fs:read", "~/work/data/secret.txt");
    let ran = world.run(
        "try:\n    print(open('data/secret.txt').read())\nexcept PermissionError as e:\n    print('caught:', e)\n\
         print('went on')\n",
    );
    insta::assert_snapshot!("a_denial_can_be_caught", ran.all());
    assert_eq!(ran.status, 0);
}

fn an_uncaught_denial_ends_the_script() {
    let world = World::new().deny("fs:write", "~/work/out.txt");
    let ran = world
        .run("def save():\n    open('out.txt', 'w')\nprint('before')\nsave()\nprint('after')\n");
    insta::assert_snapshot!("an_uncaught_denial_ends_the_script", ran.all());
    assert_eq!(ran.status, 1);
    assert!(!world.work("out.txt").exists());
}

fn links_and_dots_are_decided_where_they_lead() {
    let world = World::new().deny("fs:read", "~/work/data/secret.txt");
    symlink("data/secret.txt", world.work("innocent.txt")).unwrap();
    symlink("data", world.work("d")).unwrap();
    symlink("/etc/passwd", world.work("out")).unwrap();
    symlink("loop", world.work("loop")).unwrap();
    let ran = world.run(
        "from pathlib import Path\n\
         for p in ['innocent.txt', 'd/secret.txt', 'empty/../data/./secret.txt', 'd/../data/secret.txt', \
         '../work/data/secret.txt', 'out', '/etc/passwd', '../../../../../etc/passwd', 'loop', 'a.txt/x', \
         'a.txt\\0b', '']:\n\
         \x20   try:\n        print(repr(p), open(p).read())\n    except (OSError, ValueError) as e:\n        print(repr(p), '->', e)\n\
         print(Path('innocent.txt').is_symlink())\nPath('innocent.txt').unlink()\n",
    );
    insta::assert_snapshot!("links_and_dots", ran.all());
    assert!(world.work("data/secret.txt").exists());
    assert!(world.work("innocent.txt").symlink_metadata().is_err());
}

fn a_denial_hides_what_is_missing() {
    let world = World::new().deny("fs:read", "~/work/no/such/file");
    let ran = world.run(
        "from pathlib import Path\ntry:\n    print(Path('no/such/file').exists())\nexcept PermissionError:\n    print('refused')\n\
         print(Path('no/other/file').exists())\n",
    );
    insta::assert_snapshot!("a_denial_hides_what_is_missing", ran.all());
}

fn no_permit_opens_the_box() {
    let world = World::new();
    symlink("../box", world.work("way")).unwrap();
    let ran = world.run(
        "import os\nfor act in [lambda: open('../box/policy.dw'), lambda: open('way/new', 'w'), lambda: os.listdir('way'), \
         lambda: os.rename('../box', '../other'), lambda: os.rename('a.txt', '../box/a.txt')]:\n\
         \x20   try:\n        act()\n        print('reached')\n    except PermissionError as e:\n        print(e)\n",
    );
    insta::assert_snapshot!("no_permit_opens_the_box", ran.all());
    assert!(!ran.stdout.contains("reached"));
    assert!(world.work("a.txt").exists());
}

fn a_rename_needs_all_its_permits() {
    let world = World::new().deny("fs:delete", "~/work/data/secret.txt");
    let ran = world.run("import os\nos.rename('a.txt', 'data/secret.txt')\n");
    insta::assert_snapshot!("a_rename_needs_all_its_permits", ran.all());
    assert_eq!(
        std::fs::read_to_string(world.work("data/secret.txt")).unwrap(),
        "secret"
    );
}

fn errors_are_those_of_python() {
    let world = World::new();
    let ran = world.run(
        "import os\nfrom pathlib import Path\n\
         for act in [lambda: open('none'), lambda: open('data'), lambda: os.mkdir('data'), lambda: os.rmdir('data'), \
         lambda: os.rmdir('a.txt'), lambda: os.remove('data'), lambda: os.listdir('a.txt'), lambda: os.mkdir('p/q'), \
         lambda: os.rename('none', 'x'), lambda: Path('data').resolve()]:\n\
         \x20   try:\n        act()\n        print('no error')\n    except Exception as e:\n        print(type(e).__name__, e)\n",
    );
    insta::assert_snapshot!("errors_are_those_of_python", ran.stdout);
}

fn the_clock_is_ours_and_the_environment_is_not_told() {
    let ran = World::new().run(
        "import os\nfrom datetime import datetime, date, timezone, timedelta\n\
         print(datetime.now(), date.today(), datetime.now(timezone.utc), datetime.now(timezone(timedelta(hours=-3))))\n\
         for ask in [lambda: os.getenv('HOME'), lambda: os.environ]:\n    try:\n        ask()\n    except RuntimeError as e:\n        print(e)\n\
         sleep(0.01)\n",
    );
    insta::assert_snapshot!("the_clock_is_ours", ran.all());
}

fn text_and_bytes() {
    let world = World::new();
    std::fs::write(world.work("crlf"), b"a\r\nb\rc\n").unwrap();
    std::fs::write(world.work("latin"), b"caf\xe9").unwrap();
    let ran = world.run(
        "from pathlib import Path\nprint(repr(open('crlf').read()), open('crlf', 'rb').read())\n\
         try:\n    open('latin').read()\nexcept UnicodeDecodeError as e:\n    print(e)\n\
         print(Path('b').write_bytes(b'\\x00\\xff'), Path('b').read_bytes())\n",
    );
    insta::assert_snapshot!("text_and_bytes", ran.stdout);
}
