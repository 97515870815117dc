"""The meaning of each error of the contracts, as a sentence for the user and a next step."""

from __future__ import annotations

# Error name -> (sentence, next step). The format `credits` is for wei, `ceiling` for a maximum price, `status` for a
# state, `role` for a role's hash.
SENTENCES: dict[str, tuple[str, str]] = {
    "SameStatusError": ("The job already has that state.", "Look at it with `dps job get`."),
    "InvalidTransition": ("A job that is {from:status} cannot become {to:status}.", "Look at it with `dps job get`."),
    "JobHotStatusOnly": ("The job is over: it is {current:status}.", ""),
    "MetaScheduledScheduledStatusOnly": (
        "The job is {current:status}; only an assigned job that has not started can be refused.",
        "",
    ),
    "RunningScheduledStatusOnly": (
        "The job is {current:status}; only a claimed job can be topped up.",
        "Wait until a cluster has claimed it; submit a job that is over again.",
    ),
    "RunningColdStatusOnly": ("A provider reports that a job runs or is over, not that it is {current:status}.", ""),
    "TimeoutTooEarly": ("The provider still has time, until unix second {notBefore}.", "Try again then."),
    "CustomerOnly": ("Only the job's customer {expected} may do this; {current} asked.", "Use the customer's key."),
    "JobProviderOnly": ("Only the job's provider {expected} may do this; {current} asked.", ""),
    "CustomerMetaSchedulerProviderOnly": (
        "Only the job's customer, its provider or the meta-scheduler may do this.",
        "Use the customer's key.",
    ),
    "NewJobRequestDisabled": ("The grid takes no new jobs at the moment.", "Try again later."),
    "InsufficientFunds": (
        "{available:credits} credits are not enough: {required:credits} are required.",
        "Lock more credits.",
    ),
    "InvalidJobDefinition": ("The job requests no tasks, no CPUs or no memory.", "Correct its resources."),
    "TooMuchLocked": ("{amount:credits} credits are more than a job can hold: {most:credits}.", "Lock less."),
    "BlobTooLong": (
        "The jobs' texts and labels take {length} bytes; the chain keeps at most {most} together.",
        "Shorten them, or request fewer jobs at once.",
    ),
    "FailedCall": (
        "The contract has no such function, or had too little gas for it.",
        "Check that the contracts are of this version.",
    ),
    "AddressEmptyCode": ("There is no contract at {target}.", "Check the addresses in the address book."),
    "InvalidJob": ("There is no such job.", "Look at `dps job list`."),
    "ProviderNotJoined": ("The provider is not approved, or is banned.", ""),
    "InsufficientHardware": ("The nodes of {provider} together are too small for the job.", ""),
    "RateAboveCeiling": (
        "The job would cost {rate:credits} credits per minute; its customer pays at most {ceiling:ceiling}.",
        "Wait for a cheaper cluster, or submit it with a higher --max-price.",
    ),
    "LocationTooLong": ("The name of the job definition has {length} bytes; the chain takes at most {most}.", ""),
    "JobWaits": (
        "The job waits for job {afterJob}, which is not over, or did not finish.",
        "Wait, or cancel it with `dps job cancel`.",
    ),
    "NoEarlierJob": ("There is no job {afterJob} to wait for.", "Look at `dps job list`."),
    "SpendingLimitReached": (
        "Automatic top-ups of the job may take {spendable:credits} credits more; a minute costs {required:credits}.",
        "Allow more with `dps job auto-top-up`.",
    ),
    "JobGivenUp": ("The job's customer gave it up at unix second {giveUpAt}, so it is not assigned any more.", ""),
    "GiveUpTooSoon": (
        "The job would be given up at unix second {giveUpAt}; the earliest time is now {earliest}.",
        "Submit it with a longer --give-up-after.",
    ),
    "PendingStatusOnly": ("The job is {current:status}; only a pending job can be given up.", ""),
    "NotGivenUp": (
        "The job can be given up from unix second {giveUpAt} on (0: never).",
        "Its customer can cancel it with `dps job cancel`.",
    ),
    "CancelRequested": ("The customer has cancelled the job, so it takes no more credits.", "Submit it again."),
    "NoSpendingAuthority": ("The customer gave no authority to top the job up.", ""),
    "RemainingTimeAboveLimit": (
        "The job has {remaining} minutes left; an automatic top-up is possible with at most {limit}, before its end.",
        "Top it up by hand with `dps job topup`.",
    ),
    "NoJob": ("No job is waiting for this provider.", ""),
    "OutOfBounds": ("The list has changed since its last page was read.", "Read it from the start."),
    "TooManyNodes": ("A provider has at most {most} nodes on chain, not {count}.", "Offer a smaller partition."),
    "TooManyLabels": ("{count} labels are too many: the chain takes at most {most}.", "Remove some labels."),
    "LabelTooLong": (
        "A label's key or value has {length} bytes; the chain takes at most {most}.",
        "Shorten the provider's labels.",
    ),
    "ProposalChanged": (
        "The provider has replaced its proposal meanwhile.",
        "Check the new one with `dps provider status`.",
    ),
    "ProposalTooRecent": (
        "The proposal changed recently: approve it by its hash, or after unix second {notBefore}.",
        "Use `dps provider approve`.",
    ),
    "InvalidNodesCount": ("A provider needs at least one node.", "Correct the hardware."),
    "ArrayLengthMismatch": (
        "The lists of the call have different lengths.",
        "Give one number per node, or wishes per job.",
    ),
    "InvalidTotalCpus": ("The nodes have no CPU.", "Correct the hardware."),
    "InvalidTotalMem": ("The nodes have no memory.", "Correct the hardware."),
    "NoProvider": ("There is no such provider.", ""),
    "WaitingApprovalOnly": ("No proposal of the provider waits for approval.", ""),
    "Banned": ("The provider is banned.", ""),
    "AlreadyDone": ("The provider already has that status.", ""),
    "InvalidConstant": ("{value} is out of range: {least} to {most}.", ""),
    "CutNotDue": (
        "No new cut can take effect before unix second {notBefore} (0: no notice was given).",
        "Wait until then, or announce a cut with `dps operator constants cut PERCENT`.",
    ),
    "ERC20InsufficientBalance": (
        "{sender} has {balance:credits} credits; {needed:credits} are needed.",
        "Get more credits.",
    ),
    "ERC20InsufficientAllowance": (
        "The grid may spend {allowance:credits} credits of yours; {needed:credits} are needed.",
        "Raise the allowance with `dps allowance set`.",
    ),
    "ERC20InvalidReceiver": ("Credits cannot be sent to {receiver}.", "Give another address."),
    "ERC20InvalidSpender": ("{spender} cannot be allowed to spend credits.", ""),
    "ERC20InvalidSender": ("{sender} cannot give credits away.", ""),
    "ERC20InvalidApprover": ("{approver} cannot allow others to spend credits.", ""),
    "SafeERC20FailedOperation": ("The token {token} did not move the credits.", "Check the addresses in the book."),
    "ERC2612ExpiredSignature": ("The permit was valid until unix second {deadline}.", "Sign a new one."),
    "ERC2612InvalidSigner": ("The permit is signed by {signer}, not by {owner}.", "Sign it with the owner's key."),
    "InvalidAccountNonce": ("The permit's number is not {account}'s next, {currentNonce}.", "Sign a new one."),
    "ECDSAInvalidSignature": ("The signature is not valid.", "Sign again."),
    "ECDSAInvalidSignatureLength": ("A signature has 65 bytes, not {length}.", "Sign again."),
    "ECDSAInvalidSignatureS": ("The signature is not in its canonical form.", "Sign again."),
    "InvalidShortString": ("The token's name is stored in a format that cannot be read.", ""),
    "StringTooLong": ("The token's name {str} is too long.", ""),
    "AccessControlUnauthorizedAccount": ("{account} lacks the role {neededRole:role}.", "Use a key that has it."),
    "AccessControlBadConfirmation": ("Only the key that has a role can renounce it.", "Use that key."),
    "OwnableInvalidOwner": ("{owner} cannot own the contract.", ""),
    "OwnableUnauthorizedAccount": ("{account} is not the contract's owner.", "Use the owner's key."),
}

# Text of a token's error -> the error of newer tokens with the same meaning, and its sentence. Credit keeps the texts
# of OpenZeppelin 4, because existing clients show them. They come without figures.
TOKEN_TEXTS: dict[str, tuple[str, str]] = {
    "ERC20: transfer amount exceeds balance": (
        "ERC20InsufficientBalance",
        "The account that pays has too few credits.",
    ),
    "ERC20: insufficient allowance": (
        "ERC20InsufficientAllowance",
        "The grid may not spend that many credits of the account that pays.",
    ),
}

PANICS = {
    0x01: "an assertion failed",
    0x11: "a number overflowed",
    0x12: "a division by zero",
    0x21: "a value outside its enum",
    0x22: "broken storage",
    0x31: "an empty list",
    0x32: "an index outside its list",
    0x41: "too much memory",
    0x51: "a call of an empty function pointer",
}
