# shellcheck shell=sh
# What jobs have written since last time; POSIX sh, run on the login node. Changes nothing.
# Arguments: ROOT LIMIT; standard input: "FOLDER OFFSET", one job a line; LIMIT bytes a job at most.
# Answers "FOLDER BASE64" for each that has more, and `end`.
set -u
root=$1 limit=$2
while read -r folder offset; do
  file=$root/jobs/$folder/output.log
  size=$(stat -c %s "$file" 2> /dev/null) || continue
  if [ "$size" -gt "$offset" ]; then
    printf '%s %s\n' "$folder" "$(tail -c "+$((offset + 1))" "$file" | head -c "$limit" | base64 -w0)"
  fi
done
echo end
