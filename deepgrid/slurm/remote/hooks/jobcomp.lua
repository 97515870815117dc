-- Completion hook (JobCompType=jobcomp/lua, next to slurm.conf): writes one file to SPOOL per completion of a job.
-- A requeued job completes several times. Each of its runs gets its own record. The flag JOB_REQUEUE in `job_state` or
-- the restart count distinguishes them. A record is never overwritten.
-- The hook runs inside slurmctld, before slurmctld forgets the job. So no completion is lost if slurmctld is killed.
-- A record is renamed into place, so a reader sees complete records only. Its name is ID.END.RESTARTS: Slurm id, end
-- time and restart count. Only jobs with a comment of the grid (`deepgrid:...`) get a record. Control characters in
-- values become spaces. If the disk is full, the record goes into the file `.reserve.COMMENT`, which the supervisor made
-- at the submission: it has RESERVED bytes and becomes no longer. If that fails too, no partial record stays, and the
-- hook logs an error to slurmctld's log.

local SPOOL = "@SPOOL@"
local VERSION = "@VERSION@"
local RESERVED = 4096
local FIELDS = {
  "job_id", "name", "user_id", "job_state", "exit_code", "submit_time", "start_time", "end_time", "nodes",
  "restart_cnt", "comment",
}

-- Writes the file completely or not at all, in this mode of io.open. Returns an error message, or nil.
local function put(path, temporary, text, mode)
  local file, fault = io.open(temporary, mode)
  if file == nil then
    return fault
  end
  local written, refused = file:write(text)
  local closed, lost = file:close() -- flushes the buffer, so it can fail too
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

-- Writes the record into the reserved file of its comment.
local function put_into_reserve(path, temporary, text, comment)
  if #text > RESERVED or string.find(comment, "[^%w:_.-]") or
    not os.rename(SPOOL .. "/.reserve." .. comment, temporary) then
    return "no room, and nothing reserved"
  end
  return put(path, temporary, text, "r+")
end

local function exists(path)
  local file = io.open(path, "r")
  if file ~= nil then
    file:close()
  end
  return file ~= nil
end

-- A file name that is not yet used in the spool: a number is appended if needed.
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
  local path, temporary, text = SPOOL .. "/" .. name, SPOOL .. "/.tmp." .. name, table.concat(lines)
  local fault = put(path, temporary, text, "w")
  if fault == nil or put_into_reserve(path, temporary, text, job.comment) == nil then
    return slurm.SUCCESS
  end
  slurm.log_error("deepgrid: no completion record of job %s: %s", tostring(job.job_id), fault)
  return slurm.ERROR
end

return slurm.SUCCESS
