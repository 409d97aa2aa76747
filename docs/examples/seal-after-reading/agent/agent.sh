# A scripted agent. Its one argument says what reads the customers: shell (as it is) or python.

say() { printf '\n== %s\n' "$*"; }
run() { printf '$ %s\n' "$1"; bash -c "$1"; status=$?; [ "$status" -eq 0 ] || printf '(exit %s)\n' "$status"; return 0; }

say 'Before it has read anything, both ways to the network are open'
run 'curl -sS -w "HTTP %{http_code}\n" https://api.example.test/status'
run 'python3 status.py'

say 'It looks at the folder: names are no content'
run 'ls customer-data'
run 'curl -sS -w "HTTP %{http_code}\n" https://api.example.test/status'

say 'It reads a customer file'
case ${1:-shell} in
python) run 'python3 -c "print(open(\"customer-data/customers.csv\").read())"' ;;
*) run 'cat customer-data/customers.csv' ;;
esac

say 'After that, nothing goes out any more, whatever asks'
run 'curl -sS -w "\nHTTP %{http_code}\n" https://api.example.test/status'
run 'python3 status.py'
