# A scripted agent that sends messages to a queue without having the keys to.

say() { printf '\n== %s\n' "$*"; }
run() { printf '$ %s\n' "$1"; bash -c "$1"; status=$?; [ "$status" -eq 0 ] || printf '(exit %s)\n' "$status"; return 0; }

say 'What the agent has of the keys'
run 'echo "$AWS_ACCESS_KEY_ID $AWS_SECRET_ACCESS_KEY"'

say 'An unsigned request; the box signs it'
run 'curl -sS -w "HTTP %{http_code}\n" -d "Action=SendMessage&MessageBody=hello" https://queue.example.test/1/orders'

say 'A request signed with the placeholders; the box signs it anew'
run 'curl -sS -w "HTTP %{http_code}\n" --aws-sigv4 aws:amz:eu-west-1:sqs --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" -d "Action=SendMessage&MessageBody=again" https://queue.example.test/1/orders'

say 'From Python'
run 'python3 -c "
reply = fetch(\"https://queue.example.test/1/orders\", \"POST\", None, \"Action=SendMessage&MessageBody=python\")
print(\"HTTP\", reply[\"status\"])
print(reply[\"body\"])"'

say 'What no rule permits is not signed'
run 'curl -sS -w "\nHTTP %{http_code}\n" -X DELETE https://queue.example.test/1/orders'
