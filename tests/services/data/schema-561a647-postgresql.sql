-- The services' tables at 561a647, as that release made them on PostgreSQL.

CREATE TABLE grid_cursor (
  name VARCHAR NOT NULL,
  value BIGINT NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE grid_definition (
  location_hash VARCHAR NOT NULL,
  uploader VARCHAR NOT NULL,
  sealed BYTEA,
  enable_logging BOOLEAN NOT NULL,
  uploaded_at BIGINT NOT NULL,
  cold_seen_at BIGINT,
  PRIMARY KEY (location_hash)
);

CREATE INDEX ix_grid_definition_uploader ON grid_definition (uploader);

CREATE TABLE grid_log (
  job_id BIGINT NOT NULL,
  claimed_at BIGINT NOT NULL,
  size BIGINT NOT NULL,
  final BOOLEAN NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (job_id, claimed_at)
);

CREATE INDEX ix_grid_log_updated_at ON grid_log (updated_at);

CREATE TABLE grid_log_chunk (
  job_id BIGINT NOT NULL,
  claimed_at BIGINT NOT NULL,
  "offset" BIGINT NOT NULL,
  length BIGINT NOT NULL,
  sealed BYTEA NOT NULL,
  PRIMARY KEY (job_id, claimed_at, "offset")
);

CREATE TABLE grid_nonce (
  signer VARCHAR NOT NULL,
  nonce BYTEA NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (signer, nonce)
);

CREATE INDEX ix_grid_nonce_expires_at ON grid_nonce (expires_at);

CREATE TABLE grid_notice (
  id SERIAL NOT NULL,
  job_id BIGINT NOT NULL,
  at BIGINT NOT NULL,
  author VARCHAR NOT NULL,
  kind VARCHAR NOT NULL,
  text VARCHAR NOT NULL,
  PRIMARY KEY (id)
);

CREATE INDEX ix_grid_notice_at ON grid_notice (at);

CREATE INDEX ix_grid_notice_job_id ON grid_notice (job_id);

CREATE TABLE grid_release (
  id SERIAL NOT NULL,
  location_hash VARCHAR NOT NULL,
  job_id BIGINT NOT NULL,
  provider VARCHAR NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (id)
);

CREATE INDEX ix_grid_release_location_hash ON grid_release (location_hash);

CREATE TABLE grid_use (
  location_hash VARCHAR NOT NULL,
  job_id BIGINT NOT NULL,
  PRIMARY KEY (location_hash, job_id)
);
