"""Settings of every Prefect server of ours: of the one-machine grid, and of the systemd units."""

from __future__ import annotations

# No client and no server contacts an address of Prefect's makers.
QUIET = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
}
# A worker of slow flows. Without heartbeats, a run whose process is gone stays Running (`orchestration.automations`).
WORKER = {**QUIET, "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"}
# Slots of concurrency limits survive a restart. Events are most of what a run writes, and are deleted after a day.
# The flow `prune_history` deletes runs: Prefect's own vacuum does not know which jobs are over.
KEEPING = {
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": "P1D",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,orphans",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_BATCH_SIZE": "1000",
}
# By default each state change of a task is its own transaction, and bursts of requests open new connections.
BATCHING = {
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_DATABASE_SQLALCHEMY_POOL_SIZE": "20",
}
# The UI uses the address of the browser, instead of port 4200.
SERVER = {**QUIET, **KEEPING, **BATCHING, "PREFECT_SERVER_UI_API_URL": "/api"}
