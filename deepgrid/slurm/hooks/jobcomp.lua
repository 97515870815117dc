-- Completion hook (JobCompType=jobcomp/lua, beside slurm.conf): one record a job that ends, in SPOOL.
-- It runs inside slurmctld, before the job leaves its memory, so a record outlives a kill of slurmctld.
-- Renamed into place, so a reader sees whole records only; named by Slurm id and end time, because a job
-- can get several and the reader takes the first final one. Jobs without the grid's comment are left alone.

local SPOOL = "@SPOOL@"
local FIELDS = {
  "job_id", "name", "user_id", "job_state", "exit_code", "submit_time", "start_time", "end_time", "nodes",
  "restart_cnt", "comment",
}

function slurm_jobcomp_log_record(job)
  if string.sub(job.comment or "", 1, 9) ~= "deepgrid:" then
    return slurm.SUCCESS
  end
  local name = job.job_id .. "." .. job.end_time
  local temporary = SPOOL .. "/.tmp." .. name
  local file = io.open(temporary, "w")
  if file == nil then
    return slurm.ERROR
  end
  for _, field in ipairs(FIELDS) do
    file:write(field, "=", (string.gsub(tostring(job[field]), "[%c]", " ")), "\n")
  end
  file:close()
  os.rename(temporary, SPOOL .. "/" .. name)
  return slurm.SUCCESS
end

return slurm.SUCCESS
