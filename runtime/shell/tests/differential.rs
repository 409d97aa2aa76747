//! With a gate that permits everything, scripts print and end as they do in bash.

#![allow(clippy::unwrap_used)] // a broken fixture should stop the test

#[path = "support/world.rs"]
mod world;

use std::process::{Command, Stdio};
use world::{World, world};

fn furnished() -> World {
    world()
        .file("words", "pear\napple\nfig\napple\n")
        .file("table", "a 1\nb 2\nc 3\n")
        .file("dir/one.txt", "1\n")
        .file("dir/two.txt", "2\n")
        .file("lib.sh", "greet() { echo \"hello $1\"; }\nVERSION=3\n")
        .program("run.sh", "#!/bin/bash\necho \"$0 $# $1\"\nexit 4\n")
}

const SCRIPTS: &[&str] = &[
    "echo hello world; printf '%s-%03d\\n' a 7",
    "for i in 1 2 3; do echo $((i * i)); done",
    "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done",
    "sort words | uniq -c | sort -rn | head -1 | awk '{print $2, $1}'",
    "grep -n apple words; grep -c zzz words; echo $?",
    "cat words | tr a-z A-Z | sed 's/P/_/g'",
    "awk '{s+=$2} END {print s}' table",
    "cut -d' ' -f1 table | paste -sd, -",
    "wc -l < words; head -2 words; tail -n 1 words",
    "f() { local x=$1; echo \"f:$x:$#\"; return 5; }; f a b; echo $?",
    "a=(x y z); echo ${a[1]} ${#a[@]} ${a[@]:1}",
    "declare -A m=([k]=v [q]=w); echo ${m[k]} ${#m[@]}",
    "s=hello.tar.gz; echo ${s%.*} ${s##*.} ${s/l/L} ${#s} ${s:1:3} ${s^^}",
    "echo ${unset:-default} ${unset:+no}; x=1; echo ${x:+set}",
    "case foo.rs in *.py) echo py;; *.rs) echo rs;; esac",
    "if [[ abc =~ ^a(.)c$ ]]; then echo ${BASH_REMATCH[1]}; fi",
    "echo {a,b}{1,2} {1..4}",
    "cat <<EOF\nuser $((1+1))\n$(echo sub)\nEOF",
    "cat <<'EOF'\nraw $x\nEOF",
    "x=$(echo a; echo b); echo \"$x\"; echo $x",
    "(x=2; echo $x); echo ${x:-none}",
    "echo one > new; echo two >> new; cat new; rm new; ls new 2>/dev/null; echo $?",
    "mkdir -p p/q/r && touch p/q/r/f && find p | sort; rm -r p; ls",
    "set -e; true; false; echo unreachable",
    "set -o pipefail; false | true; echo $?; true | false | true; echo ${PIPESTATUS[@]}",
    "false || echo or; true && echo and; ! false; echo $?",
    "trap 'echo bye' EXIT; echo hi; exit 3",
    "source lib.sh; greet $VERSION; . ./lib.sh; greet again",
    "./run.sh a b; echo $?; bash run.sh x; echo $?",
    "bash -c 'echo $0 $1 $#' zero one two",
    "eval 'y=5; echo $y'; echo $y",
    "printf '1\\n2\\n3\\n' | while read n; do echo \"<$n>\"; done",
    "while IFS=' ' read -r k v; do echo \"$v=$k\"; done < table",
    "printf 'a b\\nc\\n' | xargs -n1 echo item",
    "find dir -name '*.txt' | sort | xargs cat",
    "find dir -type f -exec basename {} \\; | sort",
    "cp words copy; mv copy moved; diff words moved && echo same; rm moved",
    "echo *.sh dir/*; echo none*",
    "cd dir; pwd | sed 's#.*/##'; cd ..; cd dir/.. && ls dir",
    "ln -s words link; cat link | head -1; readlink link; [ -L link ] && echo link; rm link",
    "sed -i 's/fig/kiwi/' words; cat words; sed -n '2,3p' words",
    "echo out; echo err >&2; { echo both; } 2>&1",
    "exec 3>f3; echo three >&3; exec 3>&-; cat f3",
    "sleep 0.05 & wait $!; echo $?; (exit 7) & wait $!; echo $?",
    "cat <(echo a) <(echo b); diff <(echo a) <(echo b) >/dev/null; echo $?",
    "nosuchcommand 2>/dev/null; echo $?; ./nosuch 2>/dev/null; echo $?",
    "shopt -s nullglob; echo zzz*; shift 2>/dev/null; set -- a b; shift; echo $1",
    "timeout 5 echo quick; env A=1 bash -c 'echo $A'; A=2 bash -c 'echo $A'",
    "test -f words && [ -d dir ] && [[ -s words ]] && echo yes",
    "echo $(( 7 / 2 )) $(( 2 ** 10 )) $(( 5 > 3 ? 1 : 0 )) $((0x1f))",
    "mapfile -t lines < words; echo ${#lines[@]} ${lines[1]}",
    "getopts_test() { while getopts 'ab:' o; do echo $o $OPTARG; done; }; getopts_test -a -b val",
    "select_first() { for x in \"$@\"; do echo $x; break; done; }; select_first 'a b' c",
    "seq 3 | tac; yes | head -2; rev <<< abc; basename /a/b.c .c; dirname /a/b",
    "tar cf t.tar dir && tar tf t.tar | sort; rm t.tar",
    "date -u -d @0 +%Y-%m-%d; printf '%x\\n' 255; echo abc | md5sum",
    "x=5; let x+=2; ((x++)); echo $x; unset x; echo \"[$x]\"",
    "a=1; f() { a=2; }; f; echo $a; readonly r=1; echo $r",
    "tee a b < words > /dev/null; cmp a b && echo equal; rm a b",
    "python3 -c 'import sys; print(sys.argv[1:])' x 'y z'; echo '{\"a\":1}' | python3 -m json.tool",
];

#[test]
fn scripts_print_and_end_as_in_bash() {
    if Command::new("bash")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        eprintln!("skipped: no bash on this machine to compare with");
        return;
    }
    let mut differing = Vec::new();
    for script in SCRIPTS {
        let theirs = furnished();
        let expected = Command::new("bash")
            .args(["-c", script])
            .current_dir(&theirs.ws)
            .env_clear()
            .env("HOME", &theirs.home)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let ours = furnished().run(script);
        let expected = (
            String::from_utf8_lossy(&expected.stdout).into_owned(),
            expected.status.code(),
        );
        if (ours.stdout.as_str(), Some(ours.status)) != (expected.0.as_str(), expected.1) {
            differing.push(format!(
                "$ {script}\n-- bash {:?}\n{}-- ours {}\n{}{}",
                expected.1, expected.0, ours.status, ours.stdout, ours.stderr
            ));
        }
    }
    assert!(
        differing.is_empty(),
        "{} of {} differ:\n{}",
        differing.len(),
        SCRIPTS.len(),
        differing.join("\n")
    );
}
