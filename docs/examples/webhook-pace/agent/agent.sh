# A scripted agent with more to say than it may.

say() { printf '\n== %s\n' "$*"; }
run() { printf '$ %s\n' "$1"; bash -c "$1"; status=$?; [ "$status" -eq 0 ] || printf '(exit %s)\n' "$status"; return 0; }
post() { run "curl -sS -w '\nHTTP %{http_code}\n' -d '{\"text\": \"$1\"}' https://chat.example.test/hooks/deploys"; }

say 'Three messages'
post 'Build started'
post 'Build done'
post 'Deploy started'

say 'The fourth: refused, and told when it would pass'
post 'Deploy done'

say 'Python is no way around it'
run 'python3 -c "print(\"HTTP\", fetch(\"https://chat.example.test/hooks/deploys\", \"POST\", None, \"{}\")[\"status\"])"'
