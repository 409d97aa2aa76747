# A scripted agent that pays until it may not, then asks for its balance until it may not.

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
call() { ask tools/call "{\"name\":\"$1\",\"arguments\":$2}"; }

work() {
  ask initialize '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}'
  ask tools/list '{}'

  say 'A charge of 500 is too much at once'
  call charge '{"amount":500,"to":"ann"}'; tell "$answer"

  say 'Two charges of 40 and one of 20 make 100'
  for amount in 40 40 20; do
    call charge "{\"amount\":$amount,\"to\":\"ann\"}"; tell "$answer"
  done

  say 'One more is one too many'
  call charge '{"amount":1,"to":"ann"}'; tell "$answer"

  say 'Calls that pay nothing go on, up to 100 of all kinds'
  passed=5
  while call balance '{}'; do
    case $answer in *'"error"'*) break ;; esac
    passed=$((passed + 1))
  done
  tell "$passed calls were made before this one:"
  tell "$answer"
}

work | payments-mcp > /tmp/answers
