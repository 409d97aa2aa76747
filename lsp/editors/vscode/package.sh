#!/usr/bin/env bash
# Builds, tests and packages the extension: leaves dogwood-VERSION.vsix in this folder.
set -euo pipefail
cd "$(dirname "$0")"

npm ci --no-audit --no-fund
npm run --silent compile
npm test --silent

if grep -q '"resolved"' package-lock.json; then
  echo "package-lock.json names a registry: run npm install again with the .npmrc of this folder" >&2
  exit 1
fi

version=$(node --print 'require("./package.json").version')
# All that runs is in dist/extension.js, so no packages go along.
npx --no-install vsce package --no-dependencies --allow-missing-repository --out "dogwood-$version.vsix"
