#!/bin/sh
# Fetch public sources in many languages into a folder, for --source LANGUAGE=DIR of benchmarks.gaps.table and benchmarks.guarantee.
# Needs apt-get (Debian), npm and pip; sources that one of them does not find are reported and left out.
# Usage: benchmarks/fetch_sources.sh DIRECTORY
set -u
into=$(mkdir -p "${1:?name a directory to fetch into}" && cd "$1" && pwd)
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

# debian LANGUAGE PACKAGE...: what the packages hold, unpacked, none installed
debian() {
    language=$1
    shift
    for package in "$@"; do
        (cd "$here" && rm -f ./*.deb && mkdir -p "$into/$language" && apt-get download -q "$package" >/dev/null 2>&1 \
            && dpkg-deb -x ./*.deb "$into/$language/$package") || echo "left out: the Debian package $package"
    done
}

# node LANGUAGE PACKAGE...: the files that npm packages are published with
node() {
    language=$1
    shift
    for package in "$@"; do
        name=$(echo "$package" | tr '@/' '__')
        mkdir -p "$into/$language/$name"
        (cd "$here" && rm -f ./*.tgz && npm pack --silent "$package" >/dev/null 2>&1 \
            && tar -xzf ./*.tgz -C "$into/$language/$name") || echo "left out: the npm package $package"
    done
}

# python LANGUAGE PACKAGE...: the sources that PyPI packages are built from
python() {
    language=$1
    shift
    for package in "$@"; do
        mkdir -p "$into/$language/$package"
        (cd "$here" && rm -f ./*.tar.gz ./*.zip && python3 -m pip download --quiet --no-deps --no-build-isolation \
            --no-binary :all: "$package" >/dev/null 2>&1; tar -xzf ./"$package"*.tar.gz -C "$into/$language/$package") \
            2>/dev/null || echo "left out: the PyPI package $package"
    done
}

# pinned LANGUAGE PACKAGE==VERSION SHA256: the same, where what was fetched has that digest
pinned() {
    folder=$into/$1/${2%%==*}
    mkdir -p "$folder"
    (cd "$here" && rm -f ./*.tar.gz && echo "$2 --hash=sha256:$3" >pinned.txt && python3 -m pip download --quiet \
        --no-deps --no-binary :all: --require-hashes -r pinned.txt >/dev/null 2>&1; \
        tar -xzf ./"${2%%==*}"*.tar.gz -C "$folder") 2>/dev/null || echo "left out: the PyPI package $2"
}

node typescript rxjs@7.8.2 @reduxjs/toolkit@2.2.7 @tanstack/query-core@5.59.0
node tsx @blueprintjs/core@5.13.1 react-aria-components@1.4.1 @react-spectrum/table@3.14.0
node javascript npm@10.8.2 express@4.21.1 eslint@8.57.1
debian go golang-github-gin-gonic-gin-dev golang-github-spf13-cobra-dev
debian rust librust-regex-dev librust-regex-syntax-dev librust-clap-dev librust-serde-dev librust-serde-json-dev \
    librust-log-dev librust-rand-dev librust-walkdir-dev librust-tokio-dev librust-url-dev librust-globset-dev \
    librust-ignore-dev librust-hashbrown-dev librust-bytes-dev librust-futures-util-dev
debian java openjdk-17-source
debian cpp libabsl-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libstdc++-12-dev libre2-dev googletest
python c brotli pycryptodome zstandard
pinned csharp pythonnet==3.0.5 48e43ca463941b3608b32b4e236db92d8d40db4c58a75ace902985f76dac21cf

# Java's own sources are an archive inside their package.
for archive in "$into"/java/openjdk-17-source/usr/lib/jvm/openjdk-17/lib/src.zip \
    "$into"/java/openjdk-17-source/usr/lib/jvm/openjdk-17/src.zip; do
    [ -f "$archive" ] && python3 -m zipfile -e "$archive" "$here/jdk" && mkdir -p "$into/java/jdk" \
        && cp -r "$here/jdk/java.base" "$into/java/jdk/" && rm -f "$archive"
done
for language in "$into"/*; do
    echo "--source $(basename "$language")=$language: $(find "$language" -type f | wc -l) files"
done
