# shellcheck shell=sh
# Writes standard input to a file atomically. POSIX sh, run on the login node.
# Arguments: PATH MODE SHA256 COPY. SHA256 is the hash of the expected present content, `-` for no file. A file with
# other content was changed meanwhile and is kept. COPY is the path of a backup, `-` for none. Answers `put`, or what
# went wrong.
set -u
export LC_ALL=C
path=$1 mode=$2 seen=$3 copy=$4

now=-
if [ -e "$path" ]; then now=$(sha256sum < "$path" | cut -d ' ' -f 1); fi
if [ "$now" != "$seen" ]; then
  echo "$path was changed meanwhile"
  exit 0
fi
new=$path.deepgrid-new
if ! {
  { [ "$copy" = - ] || cp -p "$path" "$copy"; } &&
    if [ "$now" = - ]; then true > "$new" && chmod "$mode" "$new"; else cp -p "$path" "$new"; fi &&
    cat > "$new" && sync "$new" && mv "$new" "$path"
} 2> /dev/null; then
  rm -f "$new"
  echo "$path could not be written"
  exit 0
fi
echo put
