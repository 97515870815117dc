-- Completion hook (JobCompType=jobcomp/lua, beside slurm.conf): one record in SPOOL per completion of a job.
-- A job that is requeued completes several times: each of these segments gets its record, with the flag JOB_REQUEUE in
-- `job_state`, or with the restart count. A record is never overwritten.
-- It runs inside slurmctld, before the job leaves its memory, so a record outlives a kill of slurmctld.
-- Renamed into place, so a reader sees whole records only; named ID.END.RESTARTS, by Slurm id, end time and restart
-- count. Jobs without the grid's comment are left alone. Each value is one line: control characters become spaces.
-- A record that cannot be written whole (a full disk) is not there at all, and slurmctld's log says so.

local SPOOL = "@SPOOL@"
local FIELDS = {
  "job_id", "name", "user_id", "job_state", "exit_code", "submit_time", "start_time", "end_time", "nodes",
  "restart_cnt", "comment",
}

-- Whole under its name, or not at all; returns what went wrong.
local function put(path, temporary, text)
  local file, fault = io.open(temporary, "w")
  if file == nil then
    return fault
  end
  local written, refused = file:write(text)
  local closed, lost = file:close() -- what was buffered is written here
  local done = written and closed
  fault = refused or lost
  if done then
    done, fault = os.rename(temporary, path)
  end
  if done then
    return nil
  end
  os.remove(temporary)
  return fault or "the file could not be written"
end

local function exists(path)
  local file = io.open(path, "r")
  if file ~= nil then
    file:close()
  end
  return file ~= nil
end

-- A name that no record in the spool has.
local function free_name(job)
  local name = string.format("%d.%d.%d", job.job_id, job.end_time, job.restart_cnt or 0)
  local free, number = name, 1
  while exists(SPOOL .. "/" .. free) do
    number = number + 1
    free = name .. "." .. number
  end
  return free
end

function slurm_jobcomp_log_record(job)
  if string.sub(job.comment or "", 1, 9) ~= "deepgrid:" then
    return slurm.SUCCESS
  end
  local lines = {}
  for _, field in ipairs(FIELDS) do
    local value = string.gsub(tostring(job[field]), "%c", " ")
    lines[#lines + 1] = field .. "=" .. value .. "\n"
  end
  local name = free_name(job)
  local fault = put(SPOOL .. "/" .. name, SPOOL .. "/.tmp." .. name, table.concat(lines))
  if fault == nil then
    return slurm.SUCCESS
  end
  slurm.log_error("deepgrid: no completion record of job %s: %s", tostring(job.job_id), fault)
  return slurm.ERROR
end

return slurm.SUCCESS
