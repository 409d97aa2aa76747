# A scripted agent. It works the way coding agents do: every step is one `bash -c '…'`.
# This script itself runs inside the sandbox; `bash` on its PATH leads to the shell checkpoint.

say() { printf '\n== %s\n' "$*"; }
run() { printf '$ %s\n' "$1"; bash -c "$1"; status=$?; [ "$status" -eq 0 ] || printf '(exit %s)\n' "$status"; return 0; }

say 'The agent sets up a project and a bare remote'
run 'rm -rf app remote.git'
run 'git init -q --bare remote.git'
run 'git init -q -b main app'
run 'cp template/greet.sh app/greet.sh'
run 'cd app && git add . && git commit -q -m "Greet"'

say 'It pushes at once: no test has passed yet'
run 'cd app && git push -q ../remote.git main'

say 'The remote is still empty'
run 'ls remote.git/refs/heads'

say 'It runs the tests, which fail; pushing is still refused'
run 'cd app && run-tests'
run 'cd app && git push -q ../remote.git main'

say 'It mends the bug, adds and commits the change, and tests again'
run 'cd app && sed -i "s/\$2/\$1/" greet.sh && git add greet.sh && git commit -q -m "Greet the one who is named"'
run 'cd app && run-tests'

say 'Tests passed and nothing was added since: the push goes through'
run 'cd app && git push -q ../remote.git main && git log --oneline main'

say 'Another git add: what is staged now is untested, so pushing is refused again'
run 'cd app && echo "# one more idea" >> greet.sh && git add greet.sh && git commit -q -m "Untested idea"'
run 'cd app && git push -q ../remote.git main'

say 'What the remote has: the tested commit, and none of the refused ones'
run 'cd remote.git && git log --oneline main'
