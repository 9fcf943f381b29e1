#!/usr/bin/env bash
# start.sh JARS HOME PORT: runs a node that keeps its data under HOME (port 0: a free one), prints its URL when ready, ends when standard input closes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
jars=$1 home=$2 port=$3
mkdir -p "$home/config" "$home/tmp"
cp "$here/opensearch.yml" "$here/log4j2.properties" "$home/config/"
# Tests are short: the quick compiler starts a node in two thirds of the time. Benchmarks say SEARCH_NODE_TIER=4.
exec java -Xms512m -Xmx"${SEARCH_NODE_HEAP:-1g}" -XX:+UseG1GC -XX:TieredStopAtLevel="${SEARCH_NODE_TIER:-1}" \
  -Djava.io.tmpdir="$home/tmp" -Djava.awt.headless=true -Dfile.encoding=UTF-8 \
  -Dlog4j2.configurationFile="$home/config/log4j2.properties" -Dlog4j2.disable.jmx=true -Dlog4j.shutdownHookEnabled=false \
  -Dio.netty.noUnsafe=true -Dio.netty.noKeySetOptimization=true -Dopensearch.set.netty.runtime.available.processors=false \
  -cp "$jars/classes:$jars/lib/*:$jars/knn/*" OsNode "$home" "$port"
