"""The verbs of `dps operator` that deploy the contracts, administer them and move to new ones."""
