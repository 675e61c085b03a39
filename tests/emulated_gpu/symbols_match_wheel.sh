#!/bin/sh
# Usage: symbols_match_wheel.sh PYTHON SITE_PACKAGES. The checked-in list is what this torch leaves undefined.
folder=$(dirname "$0")/../../tools/emulated_gpu/preload
"$1" "$folder/list_symbols.py" "$2/torch/lib" | diff "$folder/symbols.txt" -
