#!/usr/bin/env bash
# Puts the jars and the compiled launcher of a search node into the cache, once per recipe, and prints the folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
recipe=$(cat "$here/pom.xml" "$here/OsNode.java" | sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/factbook/opensearch
if [ ! -d "$cache/$recipe" ]; then
  mkdir -p "$cache"
  making=$(mktemp -d "$cache/making.XXXXXX")
  trap 'rm -rf "$making"' EXIT
  mvn -B -q -f "$here/pom.xml" generate-resources -Ddest="$making" >&2
  javac -proc:none -cp "$making/lib/*:$making/knn/*" -d "$making/classes" "$here/OsNode.java" >&2
  mv -T "$making" "$cache/$recipe" 2>/dev/null || [ -d "$cache/$recipe" ]  # another run may have been faster
fi
echo "$cache/$recipe"
