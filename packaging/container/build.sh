#!/bin/sh
# Installs the program and its tills below a folder, from the hashed lock: build.sh SOURCE TARGET
#
# The same sources and the same Python give the same files, byte for byte: what is compiled carries a hash of its source
# instead of a time, and what would differ from one build to the next is removed.
set -eu
source=$1
target=$2
python=${PYTHON:-python3}
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_COMPILE=1 PYTHONHASHSEED=0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What builds the wheels stays out of what runs.
"$python" -m venv "$work/builder"
"$work/builder/bin/pip" install --quiet --require-hashes -r "$source/requirements/build.txt"
"$work/builder/bin/python" "$source/packaging/libraries.py" "$source" "$work/run.txt"
mkdir "$work/wheels"
set -- "$source"
for project in "$source"/adapters/*/pyproject.toml; do set -- "$@" "${project%/*}"; done
"$work/builder/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/wheels" "$@"

"$python" -m venv --without-pip "$target"
"$work/builder/bin/pip" --python "$target/bin/python" install --quiet --require-hashes -r "$work/run.txt"
"$work/builder/bin/pip" --python "$target/bin/python" install --quiet --no-deps "$work"/wheels/*.whl
# They name the folder of the wheels, which is another one each time.
find "$target" -name direct_url.json -delete
for record in "$target"/lib/python*/site-packages/*.dist-info/RECORD; do
    sed -i '/direct_url\.json/d' "$record"
done
"$target/bin/python" -m compileall -q --invalidation-mode unchecked-hash -x '/tests?/' "$target/lib"
