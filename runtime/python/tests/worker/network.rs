//! `fetch`.

use crate::world::{Test, World};

pub const TESTS: &[Test] = &[
    ("a_reply_is_a_dict", a_reply_is_a_dict),
    ("wrong_arguments", wrong_arguments),
    (
        "what_has_no_reply_is_an_exception",
        what_has_no_reply_is_an_exception,
    ),
];

fn a_reply_is_a_dict() {
    let ran = World::new().run(
        "r = fetch('https://api.example.com/a?b=c')\nprint(r['status'], r['headers'], r['body'])\n\
         r = fetch('https://api.example.com/', 'POST', {'X-A': '1'}, 'text')\nprint(r['body'])\n\
         r = fetch(url='https://api.example.com/', body=b'\\x00b', method='PUT')\nprint(r['body'])\n\
         r = fetch('https://api.example.com/refused')\nprint(r)\n",
    );
    insta::assert_snapshot!("a_reply_is_a_dict", ran.all());
}

fn wrong_arguments() {
    let ran = World::new().run(
        "u = 'http://example.com'\nfor call in [lambda: fetch(), lambda: fetch(1), lambda: fetch(u, 2), lambda: fetch(u, 'GET', [1]), \
         lambda: fetch(u, 'GET', {'a': 1}), lambda: fetch(u, 'GET', None, 5), lambda: fetch(u, 'GET', None, None, 1), \
         lambda: fetch(u, url=u), lambda: fetch(u, data='x')]:\n    try:\n        call()\n        print('called')\n    except TypeError as e:\n        print(e)\n",
    );
    insta::assert_snapshot!("wrong_arguments", ran.all());
}

fn what_has_no_reply_is_an_exception() {
    let ran = World::new().run(
        "for url in ['ftp://example.com/', 'http://127.0.0.1/', 'http://localhost:80/x', 'http://169.254.169.254/', \
         'https://example.com/long', 'https://example.com/slow', 'nonsense']:\n    try:\n        fetch(url)\n        print('fetched')\n    except OSError as e:\n        print(type(e).__name__, e)\n",
    );
    insta::assert_snapshot!("what_has_no_reply", ran.all());
}
