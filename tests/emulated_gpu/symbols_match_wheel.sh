#!/bin/sh
# Usage: symbols_match_wheel.sh PYTHON COMPLETE SITE_PACKAGES... The checked-in list has every name that these wheels leave
# undefined and, if COMPLETE is 1 (the wheel of every torch minor is here), no other.
python=$1 complete=$2
shift 2
folder=$(dirname "$0")/../../tools/emulated_gpu/preload
names=$(for site in "$@"; do echo "$site/torch/lib"; done | xargs "$python" "$folder/list_symbols.py") || exit 1
[ -n "$names" ] || exit 1
if [ "$complete" = 1 ]; then
  echo "$names" | diff "$folder/symbols.txt" -
else
  missing=$(echo "$names" | grep -vxFf "$folder/symbols.txt") && echo "not in symbols.txt: $missing" && exit 1
  exit 0
fi
