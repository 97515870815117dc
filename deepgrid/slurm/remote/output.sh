# shellcheck shell=sh
# Reads new output of jobs. POSIX sh, run on the login node. Changes nothing.
# Arguments: ROOT LIMIT. Standard input: "FOLDER OFFSET", one job per line. Reads at most LIMIT bytes per job.
# Answers "FOLDER SIZE BASE64" for each job whose output can be read, and `end` last. SIZE counts all its bytes. BASE64 is
# missing if there is nothing new.
#
# The job owns the file. At any moment it can truncate the file, make it huge without using space, or deny access to the
# login. If jobs run in the login's own account, the file can also become a link, a FIFO or a device. Links are not
# followed, and reads never block, so no job can delay the logs of other jobs.
set -u
root=$1 limit=$2
[ -x "$root/jobs" ] || exit 1 # not mounted: this says nothing about any output
while read -r folder offset; do
  file=$root/jobs/$folder/output.log
  if [ ! -f "$file" ] || [ -L "$file" ]; then continue; fi
  size=$(stat -c %s "$file" 2> /dev/null) || continue
  if [ "$size" -gt "$offset" ] && [ -r "$file" ]; then
    printf '%s %s %s\n' "$folder" "$size" "$(dd "if=$file" iflag=nofollow,nonblock,fullblock,skip_bytes,count_bytes bs=64K \
      "skip=$offset" "count=$limit" 2> /dev/null | base64 -w0)"
  elif [ -r "$file" ]; then
    printf '%s %s\n' "$folder" "$size"
  fi
done
echo end
