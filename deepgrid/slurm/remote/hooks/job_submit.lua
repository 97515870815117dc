-- Identity hook (JobSubmitPlugins=lua, next to slurm.conf): guards the grid's jobs, which it recognises by their
-- comment. It trusts root, SlurmUser (SLURM_USER) and the supervisor (SUPERVISOR), by user id. All other users can
-- neither change a job of the grid, nor submit a job with such a comment, nor write control characters into text that
-- others read. Accounts of the grid's customers cannot submit at all: the supervisor submits their jobs. `srun` steps
-- in a job are no submissions. The hook refuses a job with the name PROBE and answers with VERSION.

local SUPERVISOR = @SUPERVISOR@
local SLURM_USER = @SLURM_USER@
local CUSTOMERS_MAY_SUBMIT = @CUSTOMERS_MAY_SUBMIT@
local CUSTOMERS = { @CUSTOMERS@ } -- by the account's name
local PATTERN = @PATTERN@ -- names of further customers' accounts, for string.match; nil for none
local VERSION = "@VERSION@"
local PROBE = "deepgrid-probe"

local TEXTS = {
  "account", "admin_comment", "batch_features", "burst_buffer", "clusters", "comment", "container", "dependency",
  "exc_nodes", "extra", "features", "gres", "licenses", "mail_user", "name", "network", "partition", "prefer", "qos",
  "req_nodes", "reservation", "std_err", "std_in", "std_out", "tres_per_job", "tres_per_node", "wckey", "work_dir",
}

local function trusted(user_id)
  return user_id == 0 or user_id == SUPERVISOR or user_id == SLURM_USER
end

local function ours(comment)
  return string.sub(comment or "", 1, 9) == "deepgrid:"
end

local function refuse(sentence)
  slurm.log_user(sentence)
  return slurm.ESLURM_ACCESS_DENIED or slurm.ERROR
end

-- The first field that contains a control character; nil if there is none.
local function unclean(job)
  for _, field in ipairs(TEXTS) do
    local text = job[field]
    if type(text) == "string" and string.find(text, "%c") then
      return field
    end
  end
  return nil
end

-- An account without a name may be a customer's account.
local function is_customer(name)
  return name == nil or CUSTOMERS[name] == true or (PATTERN ~= nil and string.match(name, PATTERN) ~= nil)
end

function slurm_job_submit(job, partitions, user_id)
  if job.name == PROBE then
    return refuse("deepgrid hook " .. VERSION)
  end
  if trusted(user_id) then
    return slurm.SUCCESS
  end
  if not CUSTOMERS_MAY_SUBMIT and (job.user_id ~= user_id or is_customer(job.user_name)) then
    return refuse("deepgrid: this account's jobs are submitted by the grid only")
  end
  if not CUSTOMERS_MAY_SUBMIT and ours(job.comment) then
    return refuse("deepgrid: comments that begin with 'deepgrid:' are reserved")
  end
  local field = unclean(job)
  if field ~= nil then
    return refuse("deepgrid: control characters are not allowed in the job's " .. field)
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, user_id)
  if trusted(user_id) then
    return slurm.SUCCESS
  end
  if ours(record.comment) then
    return refuse("deepgrid: a job of the grid cannot be changed")
  end
  if ours(job.comment) then
    return refuse("deepgrid: comments that begin with 'deepgrid:' are reserved")
  end
  local field = unclean(job)
  if field ~= nil then
    return refuse("deepgrid: control characters are not allowed in the job's " .. field)
  end
  return slurm.SUCCESS
end

return slurm.SUCCESS
