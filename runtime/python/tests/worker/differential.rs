//! The same scripts here and in a real Python, where there is one.

use crate::world::{Test, World};
use std::process::Command;

pub const TESTS: &[Test] = &[("as_in_python", as_in_python)];

const SCRIPTS: &[&str] = &[
    "print(1 + 2, 7 // 2, -7 // 2, 7 % -3, 2 ** 100, 1 / 3)",
    "print([x * x for x in range(10) if x % 2], {k: len(k) for k in ['a', 'bb']}, {1, 2} | {3})",
    "print(f'{3.14159:.2f} {42:>6} {\"a\":^5}| {1000000:,} {255:#x} {True!r}')",
    "print('{:>5}|{:<5}|{x}'.format('a', 'b', x=3), 'a,b,,c'.split(','), '-'.join(['x', 'y']))",
    "a, *b, c = range(5)\nprint(a, b, c)\n(x, y), z = (1, 2), 3\nprint(x, y, z)",
    "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint([fib(i) for i in range(15)])",
    "def counter():\n    n = 0\n    def add(k=1):\n        nonlocal n\n        n += k\n        return n\n    return add\nc = counter()\nc()\nprint(c(5))",
    "class P:\n    def __init__(self, x):\n        self.x = x\n    def __repr__(self):\n        return f'P({self.x})'\n    def __eq__(self, o):\n        return self.x == o.x\nprint(P(1), [P(2)], P(1) == P(1))",
    "from dataclasses import dataclass\n@dataclass\nclass D:\n    a: int\n    b: str = 'x'\nprint(D(1), D(1) == D(1, 'x'))",
    "try:\n    {}['k']\nexcept KeyError as e:\n    print('KeyError', e)\nelse:\n    print('no')\nfinally:\n    print('done')",
    "try:\n    int('x')\nexcept (ValueError, TypeError) as e:\n    print(type(e).__name__, e)",
    "import json\nprint(json.dumps({'b': [1, None, True], 'a': 'é\"'}, sort_keys=True), json.loads('[1.5, {\"x\": null}]'))",
    "import re\nprint(re.findall(r'(\\w+)@(\\w+)', 'a@b, c@d'), re.sub(r'\\s+', ' ', 'a  b\\n c'), re.match('x', 'y'))",
    "import math\nprint(math.sqrt(2), math.floor(-1.5), math.gcd(12, 18), math.pi)",
    "from datetime import datetime, timedelta, date\nd = datetime(2024, 2, 28) + timedelta(days=2)\nprint(d, d.isoformat(), d.strftime('%Y/%m/%d'), (date(2024, 3, 1) - date(2024, 1, 1)).days)",
    "from collections import Counter, defaultdict, deque\nprint(Counter('hello').most_common(2))\nd = defaultdict(list)\nd['a'].append(1)\nprint(dict(d), list(deque([1, 2, 3], maxlen=2)))",
    "import itertools\nprint(list(itertools.chain([1], [2, 3])))",
    "from functools import reduce, partial\nprint(reduce(lambda a, b: a * b, range(1, 6)), partial(pow, 2)(5))",
    "import base64, binascii\nprint(base64.b64encode(b'hello'), base64.b64decode('aGk='), binascii.hexlify(b'ab'))",
    "print(sorted([3, 1, 2], reverse=True), sorted(['b', 'A'], key=lambda s: s.lower()), max('a', 'c', 'b'), min([], default=0))",
    "print(list(zip('ab', [1, 2])), list(enumerate('ab', 1)), list(map(str, [1, 2])), list(filter(None, [0, 1])), any([0, 1]), all([]))",
    "print('Hello'.upper(), 'hello world'.title(), ' x '.strip() + '|', 'abc'[::-1], 'abc'.find('z'), 'a' in 'abc', 'x'.zfill(3))",
    "print(b'abc'[1], b'a' + b'b', 'é'.encode(), b'\\xc3\\xa9'.decode(), list(b'ab'))",
    "x = 5\nwhile True:\n    x -= 1\n    if x == 3:\n        continue\n    if x == 0:\n        break\nelse:\n    print('never')\nprint(x)",
    "if (n := len('abc')) > 2:\n    print(n)\nprint(1 < 2 < 3, 1 if [] else 2, not None, 0 or 'x', 1 and 2)",
    "with open('t.txt', 'w') as f:\n    print(f.write('one\\ntwo\\nthree\\n'))\nwith open('t.txt') as f:\n    print(f.readline().strip(), f.readlines())\nprint(open('t.txt').read().splitlines())",
    "from pathlib import Path\np = Path('d') / 'e.txt'\nPath('d').mkdir(exist_ok=True)\np.write_text('x')\nprint(p, p.name, p.stem, p.suffix, p.parent, p.exists(), [str(c) for c in Path('d').iterdir()])\np.unlink()\nPath('d').rmdir()\nprint(Path('d').exists())",
    "import os\ntry:\n    open('no-such-file')\nexcept FileNotFoundError as e:\n    print(e)\ntry:\n    os.mkdir('.')\nexcept FileExistsError as e:\n    print(e)",
    "def f(a, b=2, *args, c, **kw):\n    return a, b, args, c, kw\nprint(f(1, c=3), f(1, 2, 3, c=4, d=5), f(*[1], **{'c': 2}))",
    "import asyncio\nasync def w(n):\n    return n * 2\nasync def main():\n    return await asyncio.gather(w(1), w(2))\nprint(asyncio.run(main()))",
    "print(0.1 + 0.2, 1e100, float('inf'), round(2.5), round(1.005, 2), int('ff', 16), bin(5), hex(255), divmod(7, 3))",
    "class C:\n    def __enter__(self):\n        print('in')\n        return self\n    def __exit__(self, *a):\n        print('out')\n        return True\nwith C():\n    1 / 0\nprint('after')",
    "print(isinstance(True, int), type(1).__name__, repr('a\\'b\\n'), [None, ...], {}, set(), ())",
];

fn as_in_python() {
    let Some(python) = real_python() else {
        print!("(no real Python of 3.11 or later here, nothing compared) ");
        return;
    };
    let mut other = Vec::new();
    for script in SCRIPTS {
        let ran = World::new().run(script);
        let dir = tempfile::tempdir().unwrap();
        let real = Command::new(&python)
            .args(["-I", "-c", script])
            .current_dir(dir.path())
            .env("PYTHONIOENCODING", "utf-8")
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&real.stdout).into_owned();
        if (ran.status, &ran.stdout) != (real.status.code().unwrap_or(-1), &stdout) {
            other.push(format!(
                "{script}\n----- here\n{}\n----- Python\n{stdout}{}",
                ran.all(),
                String::from_utf8_lossy(&real.stderr)
            ));
        }
    }
    assert!(
        other.is_empty(),
        "{} differ:\n{}",
        other.len(),
        other.join("\n=====\n")
    );
}

fn real_python() -> Option<String> {
    let recent = "import sys; sys.exit(sys.version_info < (3, 11))";
    ["python3"].into_iter().find_map(|name| {
        let ran = Command::new(name)
            .args(["-I", "-c", recent])
            .output()
            .ok()?;
        ran.status.success().then(|| name.to_owned())
    })
}
