#!/bin/sh
# Completion hook (JobCompType=jobcomp/script, JobCompLoc=this file) for sites that allow no Lua: the records of
# jobcomp.lua, written, synced and renamed into place. slurmctld runs it for one job after the other and keeps those
# that wait in memory only, so a kill of slurmctld loses their records; accounting serves then. It is not told a job's
# comment, which only root and the supervisor may set (job_submit.lua), so it asks for it.
set -u
umask 022
export LC_ALL=C SLURM_CONF='@CONF@'
spool='@SPOOL@'

case ${JOBNAME:-} in
  0x*) ;;
  *) exit 0 ;;
esac
# Its own EXITCODE cannot tell a failed launch from a signal, and some shells set UID themselves.
told=$(timeout 10 squeue -h -t all -j "$JOBID" -O UserID:20,exit_code:20,comment:200) || exit 1
read -r user exit_code comment << END_OF_ANSWER
$told
END_OF_ANSWER
case $comment in
  deepgrid:*) ;;
  *) exit 0 ;;
esac

case $JOBSTATE in
  COMPLETED) state=3 ;;
  CANCELLED) state=4 ;;
  FAILED) state=5 ;;
  TIMEOUT) state=6 ;;
  NODE_FAIL) state=7 ;;
  PREEMPTED) state=8 ;;
  BOOT_FAIL) state=9 ;;
  DEADLINE) state=10 ;;
  OUT_OF_MEMORY) state=11 ;;
  *) exit 0 ;; # not the end of it, as when it is requeued
esac

name=$JOBID.$END
temporary=$spool/.tmp.$name
if printf '%s=%s\n' job_id "$JOBID" name "$JOBNAME" user_id "$user" job_state "$state" \
  exit_code "$exit_code" submit_time "$SUBMIT" start_time "$START" end_time "$END" nodes "$NODES" \
  restart_cnt "${RESTARTS:-0}" comment "$comment" > "$temporary" &&
  sync "$temporary" && mv "$temporary" "$spool/$name" && sync "$spool"; then
  exit 0
fi
rm -f "$temporary"
exit 1
