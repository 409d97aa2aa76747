# Greets whoever is named. Has a bug that the tests find.
echo "Hello, $2!"
