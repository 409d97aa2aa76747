# A scripted agent that searches until it may not.

# Standard output is the server's input; what the agent says for people to read goes past it.
exec 3>&1
say() { printf '\n== %s\n' "$*" >&3; }
tell() { printf '%s\n' "$*" >&3; }

# The shell's side of an MCP connection: a line out, a line back.
: > /tmp/answers
exec 4< /tmp/answers
id=0
ask() {
  id=$((id + 1)) answer='' tries=0
  printf '{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}\n' "$id" "$1" "$2"
  until IFS= read -r part <&4; do
    answer=$answer$part tries=$((tries + 1))
    [ "$tries" -lt 3000 ] || { tell 'no answer'; exit 1; }
    sleep 0.01
  done
  answer=$answer$part
}

work() {
  ask initialize '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}'
  ask tools/list '{}'

  say 'It searches as long as it is answered'
  found=0
  while ask tools/call '{"name":"search","arguments":{"text":"budget"}}'; do
    case $answer in *'"error"'*) break ;; esac
    found=$((found + 1))
  done
  tell "$found searches were answered; the next one:"
  tell "$answer"

  say 'What is not a call of a tool is not counted'
  ask tools/list '{}'; tell "$answer"
}

work | notes-mcp > /tmp/answers
