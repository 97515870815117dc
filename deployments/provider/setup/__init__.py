"""Setting up a provider: one commented TOML file of settings, from which Prefect's blocks and deployments are made.

The file holds paths and addresses, never a secret. `provider_questions` names the settings, `answer_checks` tries each,
`document` reads and writes the file, and `prefect_plan` compares it with Prefect.
"""
