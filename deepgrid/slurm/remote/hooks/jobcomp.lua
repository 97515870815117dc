-- Completion hook (JobCompType=jobcomp/lua, beside slurm.conf): one record in SPOOL per completion of a job.
-- A requeued job completes several times. Each segment gets its own record, with the flag JOB_REQUEUE in `job_state`,
-- or with the restart count. A record is never overwritten.
-- The hook runs inside slurmctld before the job leaves its memory, so a record survives a kill of slurmctld.
-- A record is renamed into place, so a reader sees complete records only. Its name is ID.END.RESTARTS: Slurm id, end
-- time and restart count. Jobs without the grid's comment get no record. Control characters in values become spaces.
-- If a record cannot be written completely (a full disk), no part of it stays, and slurmctld's log reports it.

local SPOOL = "@SPOOL@"
local FIELDS = {
  "job_id", "name", "user_id", "job_state", "exit_code", "submit_time", "start_time", "end_time", "nodes",
  "restart_cnt", "comment",
}

-- Writes the file completely or not at all. Returns the fault, or nil.
local function put(path, temporary, text)
  local file, fault = io.open(temporary, "w")
  if file == nil then
    return fault
  end
  local written, refused = file:write(text)
  local closed, lost = file:close() -- this writes the buffer
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

-- A file name that no record in the spool has.
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
