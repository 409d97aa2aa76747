reply = fetch("https://api.example.test/status")
print("HTTP", reply["status"])
