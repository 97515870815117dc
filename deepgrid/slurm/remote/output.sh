# shellcheck shell=sh
# What jobs have written since last time; POSIX sh, run on the login node. Changes nothing.
# Arguments: ROOT LIMIT; standard input: "FOLDER OFFSET", one job a line; LIMIT bytes a job at most.
# Answers "FOLDER BASE64" for each that has more, and `end`.
#
# The file is the job's: at any moment it may be cut, be made huge without taking space, or be closed to the login. Where
# jobs run in the login's own account, it may also become a link, a FIFO or a device: these are never followed nor
# waited for, so no job can hold up the logs of others.
set -u
root=$1 limit=$2
while read -r folder offset; do
  file=$root/jobs/$folder/output.log
  if [ ! -f "$file" ] || [ -L "$file" ]; then continue; fi
  size=$(stat -c %s "$file" 2> /dev/null) || continue
  if [ "$size" -gt "$offset" ]; then
    printf '%s %s\n' "$folder" "$(dd "if=$file" iflag=nofollow,nonblock,fullblock,skip_bytes,count_bytes bs=64K \
      "skip=$offset" "count=$limit" 2> /dev/null | base64 -w0)"
  fi
done
echo end
