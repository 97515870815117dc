-- Identity hook (JobSubmitPlugins=lua, beside slurm.conf): the grid knows its jobs by their comment,
-- so only root and the supervisor (user id SUPERVISOR) may give a job such a comment or change such a job's
-- comment or name. Without it, a job could pass itself off as another or hide from its bill.
-- A supervisor that submits by sudo does so as the jobs' own accounts: then SUPERVISOR is nil, and only changes are barred.

local SUPERVISOR = @SUPERVISOR@

local function trusted(user_id)
  return user_id == 0 or user_id == SUPERVISOR
end

local function ours(comment)
  return string.sub(comment or "", 1, 9) == "deepgrid:"
end

function slurm_job_submit(job, partitions, user_id)
  if SUPERVISOR ~= nil and ours(job.comment) and not trusted(user_id) then
    slurm.log_user("comments that begin with 'deepgrid:' are reserved")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, user_id)
  local renames = job.comment ~= nil or job.name ~= nil
  if renames and not trusted(user_id) and (ours(record.comment) or ours(job.comment)) then
    slurm.log_user("name and comment of this job are its identity in the grid")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

return slurm.SUCCESS
